// What the desk adds where scripts run: an estimate that moves while one types, and a run that can be watched.
"use strict";

document.documentElement.classList.add("script");

const current = document.querySelector(".side nav a[aria-current]");
if (current) {
  const strip = current.closest("nav");
  strip.scrollLeft = current.offsetLeft - (strip.clientWidth - current.clientWidth) / 2;
}

// Fields that only some choices need.
function fit(form) {
  for (const part of form.querySelectorAll("[data-when]")) {
    const chosen = form.elements[part.dataset.when];
    part.hidden = Boolean(chosen) && !part.dataset.is.split(" ").includes(chosen.value);
  }
}

const plan = document.getElementById("plan");
if (plan) {
  const shown = document.getElementById("estimate");
  let waiting = 0;
  let underway = false;
  let changed = false;

  // One at a time: what changes meanwhile is asked for when the answer is there.
  async function estimate() {
    changed = underway;
    if (underway) return;
    underway = true;
    shown.setAttribute("aria-busy", "true");
    try {
      const answer = await fetch(plan.dataset.estimate, { method: "POST", body: new URLSearchParams(new FormData(plan)) });
      const text = await answer.text();
      if (!answer.ok) throw new Error(String(answer.status));
      if (!changed) {
        shown.innerHTML = text;
        mark();
        brief();
      }
    } catch {
      shown.textContent = "The estimate cannot be had now. The desk may be closed, or you may be logged out. Reload the page.";
    }
    underway = false;
    if (changed) estimate();
    else shown.setAttribute("aria-busy", "false");
  }

  function mark() {
    const faulty = new Set([...shown.querySelectorAll(".trouble a")].map((link) => link.hash.slice(1)));
    for (const field of plan.querySelectorAll("input, select, textarea")) {
      if (!field.id) continue;
      field.toggleAttribute("aria-invalid", faulty.has(field.id));
      if (faulty.has(field.id)) field.setAttribute("aria-invalid", "true");
      field.closest(".field")?.classList.toggle("faulty", faulty.has(field.id));
    }
    for (const group of plan.querySelectorAll("fieldset[id]")) group.classList.toggle("faulty", faulty.has(group.id));
    for (const part of plan.querySelectorAll("details")) part.open ||= Boolean(part.querySelector(".faulty"));
  }

  // On a narrow screen the estimate is below the form: its two numbers stay beside the buttons.
  function brief() {
    const link = document.getElementById("brief");
    const cost = document.getElementById("cost");
    const error = shown.querySelector(".error");
    if (!link) return;
    link.hidden = !cost;
    link.textContent = [cost && `costs ${cost.innerText}`, error?.innerText].filter(Boolean).join(", ");
  }

  plan.addEventListener("input", () => {
    fit(plan);
    clearTimeout(waiting);
    waiting = setTimeout(estimate, 250);
  });
  fit(plan);
  brief();
}

for (const form of document.querySelectorAll("form[data-fit]")) {
  form.addEventListener("input", () => fit(form));
  fit(form);
}

// A run as it goes on. The browser connects again by itself, from the last event it saw.
const live = document.getElementById("live");
if (live) {
  const events = new EventSource(live.dataset.events);
  const list = document.getElementById("events");
  events.addEventListener("message", (message) => {
    const event = JSON.parse(message.data);
    const line = String(event.text).split("\n")[0];
    document.getElementById("step").textContent = line;
    if (event.steps) document.getElementById("share").value = (100 * event.done) / event.steps;
    const item = document.createElement("li");
    const time = document.createElement("span");
    time.className = "quiet";
    time.textContent = event.at.slice(11, 19);
    item.append(time, ` ${line}`);
    list.append(item);
    list.scrollTop = list.scrollHeight;
  });
  events.addEventListener("end", () => {
    events.close();
    location.reload();
  });
}

// Parts that take a while to compute come after the page.
for (const part of document.querySelectorAll("[data-part]")) {
  part.textContent = "Computing the curves.";
  fetch(part.dataset.part)
    .then((answer) => (answer.ok ? answer.text() : Promise.reject()))
    .then((text) => { part.innerHTML = text; })
    .catch(() => { part.textContent = "The curves cannot be had now."; });
}

// Work that takes a while says so.
for (const form of document.querySelectorAll("form[data-busy]")) {
  form.addEventListener("submit", (sent) => {
    const button = sent.submitter ?? form.querySelector("button.button");
    button.setAttribute("aria-disabled", "true");
    button.textContent = form.dataset.busy;
  });
}
