// Runs the script of the page with a few stand-ins for what a browser has. Answers come when the
// test says so.
"use strict";
const fs = require("fs");
const vm = require("vm");

class Element {
  constructor(tag, id = "") {
    Object.assign(this, { tag, id, value: "", children: [], listeners: {}, style: {} });
  }
  append(...children) { this.children.push(...children); }
  replaceChildren(...children) {
    this.children = children;
    if (this.tag === "select") {
      this.value = (children.find((option) => option.selected) ?? children[0])?.value ?? "";
    }
  }
  get textContent() { return this.children.map((x) => x.textContent ?? x).join(""); }
  set textContent(text) { this.children = [text]; }
  addEventListener(name, listener) { this.listeners[name] = listener; }
  setAttribute() {}
  all() { return [this, ...this.children.flatMap((x) => (x.all ? x.all() : []))]; }
}

const tags = { model: "select", signature: "select", explain: "button", example: "button" };
const ids = [...Object.keys(tags), "form", "inputs", "about", "answer", "words"];
const elements = ids.map((id) => new Element(tags[id] ?? "div", id));
const ask = new Element("button");
const all = () => [ask, ...elements.flatMap((x) => x.all())];
const byId = (id) => all().find((x) => x.id === id);
const document = {
  body: new Element("body"),
  createElement: (tag) => new Element(tag),
  getElementById: byId,
  querySelectorAll: (tag) => all().filter((x) => x.tag === tag),
};
function Option(text, value, _, selected) { return { value, selected, textContent: text }; }

const answers = JSON.parse(fs.readFileSync(0, "utf8"));
const waiting = [];  // Requests for predictions.
function fetch(path, { method, body, signal } = {}) {
  const answer = (json) => ({ ok: !json.error, json: async () => json });
  if (method !== "POST") return Promise.resolve(answer(answers[path]));
  return new Promise((resolve, reject) => {
    const { signature_name, instances } = JSON.parse(body);
    const give = () => resolve(answer({ predictions: instances.map(() => answers[signature_name]) }));
    waiting.push({ path, signature_name, instances, give });
    signal.addEventListener("abort", () => reject(signal.reason));
  });
}

const page = fs.readFileSync(process.argv[2], "utf8");
const script = page.slice(page.indexOf("<script>") + 8, page.indexOf("</script>"));
const names = { document, Option, fetch, location: { search: "" }, URLSearchParams, AbortController };
const settled = () => new Promise((resolve) => setTimeout(resolve, 5));
const seen = {};

async function choose(id, value) {
  byId(id).value = value;
  byId(id).listeners.change();
  await settled();
}

async function submit(text) {
  byId("input-text").value = text;
  byId("form").listeners.submit({ preventDefault() {} });
  await settled();
  return waiting.pop();
}

(async () => {
  vm.runInNewContext(script, names);
  await settled();
  const late = await submit("good");
  await choose("model", "numbers");
  late.give();
  await settled();
  seen.after_another_model = byId("answer").textContent;
  (await submit("good")).give();
  await settled();
  seen.of_the_other_model = byId("answer").textContent;
  const typed = await submit("good");
  byId("inputs").listeners.input();
  typed.give();
  await settled();
  seen.after_another_text = byId("answer").textContent;
  await choose("model", "broken");
  seen.of_a_broken_model = [byId("answer").textContent, ask.disabled];
  await choose("model", "pairs");
  byId("input-pair").value = "b";
  const { signature_name, instances } = await submit("a");
  seen.of_a_pair = [signature_name, instances];
  byId("input-pair").value = "";
  seen.of_a_text = (await submit("a")).signature_name;
  byId("example").listeners.click();
  await settled();
  seen.example = byId("input-text").value.length > 0 && byId("input-pair").value.length > 0;
  console.log(JSON.stringify(seen));
})();
