"use strict";
// The page of /status: asks the broker for numbers, and shows them. Names become text, never markup.
// The chosen topic and the filter are in the address (#topic=…&filter=…), so that a view can be kept.

const PAUSE = 2000; // milliseconds between two questions
const KEPT = 150; // samples: five minutes
const at = (id) => document.getElementById(id);

let token = "";
let before = null;
let timer = 0;
let asked = 0;
const samples = [];

const count = new Intl.NumberFormat("en").format;
const rate = (value) => value.toLocaleString("en", { maximumFractionDigits: value < 10 ? 1 : 0 });

function bytes(value) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${value.toLocaleString("en", { maximumFractionDigits: unit && value < 100 ? 1 : 0 })} ${units[unit]}`;
}

function view() {
  return new URLSearchParams(location.hash.slice(1));
}

function show(changes) {
  const chosen = view();
  for (const [name, value] of Object.entries(changes)) {
    if (value) chosen.set(name, value);
    else chosen.delete(name);
  }
  history.replaceState(null, "", `#${chosen}`);
  ask();
}

async function get(path) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const answer = await fetch(path, { headers, cache: "no-store" });
  if (answer.status === 401) at("access").hidden = false;
  if (!answer.ok) throw new Error(`${answer.status} ${answer.statusText}`);
  at("access").hidden = true;
  return answer.json();
}

async function ask() {
  clearTimeout(timer);
  const chosen = view();
  const question = ++asked;
  try {
    const numbers = await get(`/status/numbers?filter=${encodeURIComponent(chosen.get("filter") || "")}`);
    if (question !== asked) return; // a later question has another filter or topic
    draw(numbers, chosen.get("topic"));
    const topic = chosen.get("topic");
    if (topic) await detail(topic);
    else at("detail").hidden = true;
    state("live", false);
  } catch (error) {
    state(error.message, true);
  }
  if (question !== asked) return;
  timer = setTimeout(ask, PAUSE);
}

function state(text, lost) {
  at("state").textContent = text;
  at("state").className = lost ? "lost" : "";
}

function row(cells, first) {
  const line = document.createElement("tr");
  if (first) cells = [first, ...cells];
  for (const cell of cells) {
    const field = line.insertCell();
    if (cell instanceof Node) field.append(cell);
    else field.textContent = cell;
  }
  return line;
}

function fill(table, lines) {
  at(table).tBodies[0].replaceChildren(...lines);
}

function draw(numbers, topic) {
  const seconds = before ? (numbers.time - before.time) / 1000 : 0;
  const known = new Map(before ? before.topics.map((each) => [each.name, each]) : []);
  const since = (now, then, name) => (then && seconds > 0 ? Math.max(0, (now[name] - then[name]) / seconds) : 0);
  if (seconds >= PAUSE / 2000) {
    samples.push([since(numbers, before, "messagesIn"), since(numbers, before, "messagesOut")]);
    samples.splice(0, samples.length - KEPT);
  }
  at("cluster").textContent = numbers.cluster;
  at("service-url").textContent = numbers.serviceUrl;
  at("version").textContent = numbers.version;
  document.title = `${numbers.cluster}: ${count(numbers.backlog)} waiting`;
  const { used, limit } = numbers.memory;
  const tiles = [
    ["published/s", rate(since(numbers, before, "messagesIn"))],
    ["delivered/s", rate(since(numbers, before, "messagesOut"))],
    ["in/s", bytes(since(numbers, before, "bytesIn"))],
    ["entries of backlog", count(numbers.backlog)],
    ["stored", bytes(numbers.storage)],
    [limit ? `of ${bytes(limit)} of memory` : "memory of messages", limit ? `${rate((100 * used) / limit)} %` : bytes(used)],
    ["topics", count(numbers.topicsCount)],
    ["subscriptions", count(numbers.subscriptions)],
    ["producers", count(numbers.producers)],
    ["consumers", count(numbers.consumers)],
    ["connections", count(numbers.connections)],
  ];
  at("tiles").replaceChildren(
    ...tiles.map(([name, value]) => {
      const tile = document.createElement("div");
      const number = document.createElement("strong");
      const label = document.createElement("span");
      number.textContent = value;
      label.textContent = name;
      tile.append(number, label);
      return tile;
    }),
  );
  plot();
  at("matching").textContent =
    numbers.matching > numbers.topics.length
      ? `${count(numbers.matching)} topics, of which these have the largest backlogs`
      : `${count(numbers.matching)} topics`;
  fill(
    "topics",
    numbers.topics.map((each) => {
      const link = document.createElement("a");
      const then = known.get(each.name);
      link.textContent = each.name.replace(/^persistent:\/\//, "");
      link.href = `#${new URLSearchParams({ ...Object.fromEntries(view()), topic: each.name })}`;
      const line = row(
        [
          count(each.backlog),
          rate(since(each, then, "messagesIn")),
          rate(since(each, then, "messagesOut")),
          count(each.messagesIn),
          bytes(each.storage),
          count(each.producers),
          count(each.subscriptions),
          count(each.consumers),
        ],
        link,
      );
      if (each.name === topic) line.className = "chosen";
      return line;
    }),
  );
  before = numbers;
}

function plot() {
  const most = Math.max(1, ...samples.flat());
  at("most").textContent = rate(most);
  document.querySelectorAll("#rates polyline").forEach((line, which) => {
    const points = samples.map((sample, place) => {
      const x = 600 - ((samples.length - 1 - place) * 600) / (KEPT - 1);
      return `${x.toFixed(1)},${(86 - (sample[which] * 82) / most).toFixed(1)}`;
    });
    line.setAttribute("points", points.join(" "));
  });
}

async function detail(topic) {
  const [domain, rest] = topic.split("://");
  const path = rest.split("/").map(encodeURIComponent).join("/");
  const stats = await get(`/admin/v2/${domain}/${path}/stats`);
  at("detail-title").textContent = topic;
  const subscriptions = Object.entries(stats.subscriptions);
  fill(
    "subscriptions",
    subscriptions.map(([name, each]) =>
      row([
        name,
        each.type,
        count(each.msgBacklog),
        count(each.unackedMessages),
        count(each.msgDelayed),
        count(each.consumers.length),
      ]),
    ),
  );
  fill("clients", [
    ...stats.publishers.map((each) => row([each.producerName, "producer", each.address, each.clientVersion, ""])),
    ...subscriptions.flatMap(([name, each]) =>
      each.consumers.map((consumer) =>
        row([
          consumer.consumerName,
          `consumer of ${name}`,
          consumer.address,
          consumer.clientVersion,
          count(consumer.availablePermits),
        ]),
      ),
    ),
  ]);
  at("detail").hidden = false;
}

at("filter").value = view().get("filter") || "";
at("filter").addEventListener("input", (event) => show({ filter: event.target.value.trim() }));
addEventListener("hashchange", ask);
at("access").addEventListener("submit", (event) => {
  event.preventDefault();
  token = at("token").value.trim();
  ask();
});
ask();
