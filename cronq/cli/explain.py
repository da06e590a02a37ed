"""`cronq explain` says in English what a cron expression means."""

import click

from cronq.cli.next import Refused
from cronq.schedule import Dst
from cronq.timing import Cron, InvalidTiming
from cronq.timing.explain import explain as in_english


@click.command()
@click.argument("expression")
@click.option("--tz", default="UTC", show_default=True, help="The time zone, such as Europe/Paris.")
@click.option("--dst", type=click.Choice([each.value for each in Dst]), default="vixie", show_default=True,
              help="What happens when the clocks change.")  # fmt: skip
@click.option("--day", type=click.Choice(["or", "and"]), default="or", show_default=True,
              help="How day-of-month and day-of-week join.")  # fmt: skip
def explain(*, expression: str, tz: str, dst: str, day: str) -> None:
    """Say in English what EXPRESSION, a cron expression, means."""
    try:
        click.echo(in_english(Cron(expression, tz, Dst(dst), "and" if day == "and" else "or")))
    except InvalidTiming as error:
        raise Refused(str(error)) from None
