"""A tab in Flower: cronq's schedules, with what became of them. Flower itself stays as it is.

Flower is told of one more route, and of a template loader that puts the tab into its navigation; its sign-in
holds for the tab as well.
"""

from pathlib import Path
from typing import Any, Final

from flower import urls
from flower.views import BaseHandler
from tornado import ioloop, template, web

from cronq.app import Cronq, cronq_of
from cronq.errors import CronqError, first_line
from cronq.store import history, overview
from cronq.store.schema import require_schema
from cronq.store.values import OUTAGES
from cronq.timing.explain import explain
from cronq.views import iso

HERE: Final = Path(__file__).parent / "templates"
SHOWN: Final = 200
OUTCOMES: Final = 10

TAB: Final = b"""
        <li class="nav-item"><a class="nav-link{% if active_tab == 'schedules' %} active{% end %}"
          href="{{ reverse_url('schedules') }}">Schedules</a></li>
"""


def install() -> None:
    """Put the tab into the Flower that this process is about to start."""
    route = web.url(r"/schedules", SchedulesView, name="schedules")
    urls.handlers[-1:-1] = [route]  # before the one that catches all
    urls.settings["template_loader"] = Loader(urls.settings["template_path"])


class Loader(template.Loader):
    """Loads Flower's templates, and ours; the navigation gets one more entry."""

    def _create_template(self, name: str) -> template.Template:
        ours = HERE / name
        text = (ours if ours.exists() else Path(self.root) / name).read_bytes()
        if name == "navbar.html":
            text = text.replace(b"</ul>", TAB + b"</ul>", 1)
        return template.Template(text, name=name, loader=self)


class SchedulesView(BaseHandler):  # type: ignore[misc]
    """The page behind the tab."""

    @web.authenticated
    async def get(self) -> None:
        """Show the schedules whose name or task has the argument `q` in it."""
        text, after = self.get_argument("q", ""), self.get_argument("after", "")
        parts = cronq_of(self.application.capp)
        loop, problem = ioloop.IOLoop.current(), ""
        rows: list[dict[str, Any]] = []
        try:
            rows = await loop.run_in_executor(None, lambda: schedules(parts, text, after))
        except (CronqError, *OUTAGES) as error:
            problem = first_line(error)
        more = rows[SHOWN - 1]["name"] if len(rows) > SHOWN else None
        page = parts.settings.api_url.rstrip("/")
        self.render("schedules.html", rows=rows[:SHOWN], problem=problem, q=text, more=more, page=page)


def schedules(parts: Cronq, text: str, after: str) -> list[dict[str, Any]]:
    """Return the schedules by name, one more than is shown."""
    require_schema(parts.database)
    found = overview.find_schedules(parts.database, text=text, after=after, limit=SHOWN + 1)
    recent = history.recent_jobs(parts.database, found, OUTCOMES)
    return [
        {
            "name": each.name,
            "task": each.definition.task,
            "tenant": each.definition.tenant,
            "meaning": explain(each.timing),
            "next": "" if each.next_fire_at is None else iso(each.next_fire_at),
            "state": "paused" if each.paused_at else "set aside" if each.fault else "active",
            "note": each.pause_note or each.fault or "",
            "recent": [(row["id"], row["state"].lower().replace("_", " ")) for row in recent[each.id]],
        }
        for each in found
    ]
