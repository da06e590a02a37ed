// Keeps a page live. Without it every page still shows everything, and every button still works.
"use strict";

const REFRESH_MS = 1500; // at most this often
const IDLE_MS = 15000; // and at least this often, for what no event tells
const LATE_S = 5;
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

// -- times -----------------------------------------------------------------------------------------------

function offset(date) {
  const minutes = -date.getTimezoneOffset();
  const two = (n) => String(Math.floor(Math.abs(n))).padStart(2, "0");
  return (minutes < 0 ? "-" : "+") + two(minutes / 60) + ":" + two(minutes % 60);
}

function wall(date) {
  const two = (n) => String(n).padStart(2, "0");
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  const clock = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  const today = new Date().toDateString() === date.toDateString();
  return (today ? "" : day + " ") + clock + " " + offset(date);
}

function span(seconds) {
  const s = Math.abs(seconds);
  if (s < 60) return `${Math.floor(s)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${Math.floor(s % 60)} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

function localize(root) {
  for (const element of root.querySelectorAll("time:not(.fixed):not([data-relative])")) {
    element.textContent = wall(new Date(element.dateTime));
  }
  for (const element of root.querySelectorAll(".zone time.fixed")) {
    // Who stands in the schedule's own zone need not read it twice.
    const date = new Date(element.dateTime);
    element.closest(".zone").hidden = element.textContent.includes(` ${offset(date)} `);
  }
  for (const element of root.querySelectorAll("[data-clock]")) {
    element.textContent = wall(new Date(element.dataset.clock)).match(/\d\d:\d\d/)[0];
  }
  const all = root.querySelector("[data-tick-all]");
  if (all) all.hidden = false; // without a script it could do nothing
  tick(root);
}

function tick(root) {
  for (const element of (root || document).querySelectorAll("time[data-relative]")) {
    const date = new Date(element.dateTime);
    const ahead = (date - Date.now()) / 1000;
    // A page is a moment behind: what comes next is not "2 s ago" while its successor is being fetched.
    const now = Math.abs(ahead) < 1 || (ahead < 0 && ahead > -LATE_S && element.closest("[data-coming]"));
    element.textContent = now ? "now" : ahead > 0 ? `in ${span(ahead)}` : `${span(ahead)} ago`;
    element.title = wall(date);
  }
}

// -- live ------------------------------------------------------------------------------------------------

let wanted = false, busy = false, last = Date.now();

function inUse(part) {
  // What somebody works in, or has opened, is left alone.
  const focus = document.activeElement;
  return part.querySelector("details[open], input:checked") || (part.contains(focus) && focus.matches("input, select"));
}

async function refresh() {
  if (busy || document.hidden) return;
  busy = true;
  wanted = false;
  last = Date.now();
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (!answer.ok || answer.redirected) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const part of document.querySelectorAll("[data-live]")) {
      const next = fresh.querySelector(`[data-live="${part.dataset.live}"]`);
      if (!next || inUse(part)) continue;
      localize(next);
      if (next.innerHTML !== part.innerHTML) swap(part, next);
    }
  } catch { /* the next event tries again */ } finally { busy = false; }
}

function swap(part, next) {
  const places = [...part.querySelectorAll("a, button, summary")];
  const place = places.indexOf(document.activeElement);
  part.replaceChildren(...document.importNode(next, true).childNodes);
  if (place >= 0) [...part.querySelectorAll("a, button, summary")][place]?.focus();
}

function showProgress(report) {
  for (const bar of document.querySelectorAll(`.bar[data-job="${CSS.escape(report.job_id)}"]`)) {
    bar.querySelector("progress").value = report.progress;
    bar.querySelector(".percent").textContent = `${report.progress} %`;
    const step = bar.querySelector(".step");
    step.textContent = report.current_step || "";
    if (report.steps_total) {
      const count = document.createElement("span");
      count.className = "soft";
      count.textContent = ` ${report.steps_completed}/${report.steps_total}`;
      step.append(count);
    }
  }
}

function listen() {
  const light = document.getElementById("live");
  const job = document.querySelector("[data-live=bar]") && location.pathname.match(/^\/jobs\/([^/]+)$/);
  const source = new EventSource(job ? `/api/jobs/${job[1]}/events` : "/api/events");
  const show = (on) => { light.className = `live ${on ? "on" : "off"}`; light.textContent = on ? "live" : "reconnecting"; };
  source.onopen = () => { show(true); wanted = true; };
  source.onerror = () => show(false);
  source.addEventListener("progress", (event) => showProgress(JSON.parse(event.data)));
  source.addEventListener("job", (event) => {
    wanted = true;
    const over = ["COMPLETED", "FAILED", "TIMED_OUT", "SKIPPED", "CANCELLED"];
    if (job && over.includes(JSON.parse(event.data).status)) {
      source.close();
      light.className = "live";
      light.textContent = "";
    }
  });
  setInterval(() => {
    tick();
    const since = Date.now() - last;
    if ((wanted && since > REFRESH_MS) || since > IDLE_MS) refresh();
  }, 500);
  addEventListener("pagehide", () => source.close());
}

// -- keys ------------------------------------------------------------------------------------------------

let going = 0;
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select, textarea")) return;
  if (event.key === "/") {
    const search = document.querySelector("input[type=search]");
    if (search) { event.preventDefault(); search.focus(); search.select(); }
  } else if (event.key === "g") {
    going = Date.now();
  } else if (Date.now() - going < 1500) {
    document.querySelector(`nav a[data-key="${CSS.escape(event.key)}"]`)?.click();
    going = 0;
  } else if (event.key === "Escape") {
    document.querySelector("details.pause[open]")?.removeAttribute("open");
  }
});

addEventListener("change", (event) => {
  if (!event.target.matches("[data-tick-all]")) return;
  for (const box of document.querySelectorAll("input[form=ticked]")) box.checked = event.target.checked;
});

addEventListener("submit", (event) => {
  const ask = event.target.dataset.ask;
  if (ask && !confirm(ask)) event.preventDefault();
});

addEventListener("toggle", (event) => {
  if (event.target.matches?.("details.pause[open]")) event.target.querySelector("input[name=note]").focus();
}, true);

document.getElementById("zone").textContent = `${zone}, as ${offset(new Date())}`;
localize(document);
for (const box of document.querySelectorAll(".scroll")) {
  // What is newest in a calendar is looked at first.
  const newest = [...box.querySelectorAll("tbody .cell")].pop();
  if (newest) box.scrollLeft += Math.max(0, newest.getBoundingClientRect().right - box.getBoundingClientRect().right + 4);
}
if (document.querySelector("[data-live]")) listen();
