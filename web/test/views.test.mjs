// The other views: check, play, compare, quorums, learn, traces.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { program, quorate, settled, start, visit } from "./lab.mjs";

let lab;
let page;

before(async () => {
  lab = await start();
  page = await lab.page("");
  await settled(page);
});

after(() => lab.close());

test("Maekawa's deadlock is found and shown in two clicks", async () => {
  await page.click("nav >> text=Check");
  await page.click("text=Maekawa's deadlock");
  await page.waitForSelector(".result.bad");
  assert.match(await page.textContent(".result-title"), /Deadlock/);
  await settled(page, "checked");
  const shown = await page.evaluate(() => {
    const story = window.quorate.checked.story.value;
    return { algorithm: story.algorithm, records: story.recordCount, broken: story.broken[0]?.property };
  });
  assert.equal(shown.algorithm, "mutex/maekawa-basic");
  assert.equal(shown.broken, "liveness");
  await page.keyboard.press("Home");
  for (let i = 0; i < shown.records; i++) await page.keyboard.press("ArrowRight");
  await page.waitForFunction((count) => window.quorate.checked.player.records.value === count, shown.records);
  assert.match(await page.textContent(".verdicts"), /wait for each other: 1, 2, 3/);
});

test("a check ends as it does on the command line", { skip: !program }, async () => {
  for (const [name, words] of [
    ["mutex/ricart-agrawala", [["requests", "2"]]],
    ["mutex/lamport", [["channels", "unordered"]]],
    ["election/bully", [["crashes", "1"], ["timers", "anytime"]]],
    ["group/nack-multicast", [["senders", "1"], ["losses", "1"]]],
  ]) {
    const query = words.map((pair) => pair.join("=")).join("&");
    await visit(page, `#/check/${name}?${query}`, "checked");
    await page.waitForSelector(".result");
    await page.waitForFunction(
      (name) => window.quorate.checked.answer.value?.report.algorithm === name && !window.quorate.checked.busy.value,
      name,
    );
    const report = await page.evaluate(() => window.quorate.checked.answer.value.report);
    const flags = words.flatMap(([key, value]) => [`--${key}`, value]);
    const wanted = quorate(["check", name, ...flags, "--json", "--trace", "/dev/null"]);
    delete wanted.trace;
    assert.deepEqual(report, wanted, name);
  }
});

test("a long check can be stopped, and the page goes on", async () => {
  await page.evaluate(() => {
    location.hash = "#/check/mutex/lamport?nodes=4&requests=3";
  });
  await page.waitForSelector(".growth .button", { timeout: 20_000 });
  await page.click(".growth .button");
  await page.waitForSelector(".growth .button", { state: "detached" });
  await visit(page, "#/check/mutex/central?nodes=2", "checked");
  await page.waitForSelector(".result.good");
});

test("a reader who schedules can break a flawed variant, and be told the shortest way", async () => {
  await visit(page, "#/play/mutex/central?nodes=2&flaw=IgnoreHolder", "played");
  await page.waitForSelector(".choices button");
  // Both ask, both are let in.
  for (const move of ["c1", "c2", "d", "d"]) {
    const before = await page.evaluate(() => location.hash);
    await page.click(`.choices button[data-move^=${move}]`);
    await page.waitForFunction((before) => location.hash !== before, before);
    await settled(page, "played");
  }
  await page.waitForSelector(".scheduler .broken");
  assert.match(await page.textContent(".scheduler .broken"), /in 4 moves.*safety/s);
  await visit(page, "#/play/mutex/ricart-agrawala?nodes=2&flaw=IgnoreTies", "played");
  await page.click("text=Show the shortest way");
  await page.waitForSelector(".scheduler .broken");
  const text = await page.textContent(".scheduler .broken");
  assert.match(text, /You broke it in 6 moves/);
  assert.match(text, /Nobody can do it in fewer/);
  assert.match(text, /both go first/);
  const link = await page.evaluate(() => location.hash);
  assert.match(link, /moves=c1,/);
  await page.click("text=Undo");
  await page.waitForSelector(".choices button");
  const other = await lab.page(link);
  await settled(other, "played");
  await other.waitForSelector(".scheduler .broken");
  await other.close();
});

test("a move that cannot be made is refused in a sentence", async () => {
  await visit(page, "#/play/mutex/central?nodes=2&moves=d1.1-2", "played");
  await page.waitForSelector(".refused");
  assert.match(await page.textContent(".refused"), /move 1, d1.1-2: that cannot happen there/);
});

test("algorithms are compared: points, lines, and a table that agrees with theory", async () => {
  await visit(page, "#/compare/mutex?sizes=4,9");
  await page.waitForFunction(() => document.querySelectorAll(".figures-table tbody tr").length >= 15, null, { timeout: 60_000 });
  await page.waitForFunction(() => document.querySelector(".progress")?.textContent === "", null, { timeout: 60_000 });
  assert.ok((await page.$$(".chart path title")).length >= 25, "points");
  const off = await page.$$(".formula.off");
  assert.equal(off.length, 0, "all figures agree with what is published");
  await visit(page, "#/compare/sweep?algorithm=mutex/central&axis=nodes&values=3,5,9&runs=2");
  await page.waitForFunction(() => document.querySelectorAll(".chart path title").length === 3, null, { timeout: 60_000 });
});

test("quorums are drawn, killed and counted", async () => {
  await visit(page, "#/quorums/grid?nodes=9");
  await page.waitForFunction(() => document.querySelectorAll(".quorum-node").length === 9);
  assert.match(await page.textContent(".alive"), /9 of 9 quorums/);
  await page.click(".quorum-node >> nth=0");
  assert.match(await page.textContent(".alive"), /4 of 9 quorums/);
  for (const node of [4, 8]) await page.click(`.quorum-node >> nth=${node}`);
  assert.match(await page.textContent(".alive"), /No quorum is alive/);
  await visit(page, "#/quorums/custom:1,2;3,4");
  await page.waitForFunction(() => document.querySelector(".properties")?.textContent.includes("do not intersect"));
});

test("a lecture runs beside its text, and its exercise checks itself", async () => {
  await visit(page, "#/learn/03-ricart-agrawala", "learned");
  await page.waitForFunction(() => window.quorate.learned.story.value?.algorithm === "mutex/ricart-agrawala");
  await page.click(".command-button >> text=--crash 4@2 >> nth=0");
  await page.waitForFunction(() => window.quorate.learned.story.value?.outages.length === 1);
  const exercise = page.locator("[data-exercise=ra-cost]");
  await exercise.locator("input").fill("27");
  await exercise.locator("button").click();
  await exercise.locator(".verdict-line.bad").waitFor();
  await exercise.locator("input").fill("18");
  await exercise.locator("button").click();
  await exercise.locator(".verdict-line.good").waitFor();
});

test("every lecture and every command in it works", async () => {
  const ids = await page.evaluate(() => window.quorate.lectures());
  assert.equal(ids.length, 12);
  for (const id of ids) {
    await visit(page, `#/learn/${id}`, "learned");
    const buttons = page.locator("button.command-button");
    const count = await buttons.count();
    assert.ok(count > 0, id);
    for (let i = 0; i < count; i++) {
      const text = await buttons.nth(i).textContent();
      // Others lead to views of their own, or take long.
      if (!/quorate (sim|check) /.test(text)) continue;
      await buttons.nth(i).click();
      await settled(page, "learned");
      const refused = await page.evaluate(() => window.quorate.learned.refused.value);
      assert.equal(refused, undefined, `${id}: ${text}`);
    }
  }
});

test("every exercise has an answer that the engines give", async () => {
  const wrong = await page.evaluate(() => window.quorate.answers());
  assert.ok(Object.keys(wrong).length >= 12);
  for (const [id, value] of Object.entries(wrong)) assert.ok(Number.isFinite(value), `${id}: ${value}`);
});

test("every algorithm has a page in the words of its file", async () => {
  await visit(page, "#/learn/mutex/maekawa", "learned");
  await page.waitForSelector(".lesson-text h2 >> text=Idea");
  const text = await page.textContent(".lesson-text");
  for (const heading of ["Paper", "Assumptions", "Messages", "State", "Safety", "Liveness", "Cost"]) {
    assert.ok(text.includes(heading), heading);
  }
});

test("a trace of one's own is judged and drawn, and goes out to ShiViz and back", async () => {
  await visit(page, "#/traces");
  await page.click("text=A sample");
  await page.waitForSelector(".verdicts.bad");
  assert.match(await page.textContent(".verdicts"), /safety/);
  const log = await page.evaluate(async () => {
    const { opened } = window.quorate;
    const answer = await opened.engine.ask({ do: "export", slot: opened.slot, form: "shiviz", title: "", from: null, to: null });
    return answer.text;
  });
  assert.match(log, /^n1 \{"n1":1\}/);
  await page.click("text=Another one");
  await page.fill("#paste", log);
  await page.click("text=Draw it");
  await settled(page, "opened");
  assert.ok(await page.evaluate(() => window.quorate.opened.story.value.recordCount >= 8));
  await page.click("text=Another one");
  await page.fill("#paste", "n1 nonsense\nx");
  await page.click("text=Draw it");
  await page.waitForSelector(".refused");
  assert.match(await page.textContent(".refused"), /line 1/);
  await page.setInputFiles(".hidden-file", {
    name: "run.jsonl",
    mimeType: "application/x-ndjson",
    buffer: Buffer.from('{"quorate":1,"engine":"mine","algorithm":"mutex","nodes":2,"spec":{}}\n{"t":0,"n":1,"in":{"command":"Acquire"}}\n{"end":true}\n'),
  });
  await settled(page, "opened");
  assert.equal(await page.evaluate(() => window.quorate.opened.story.value.nodes), 2);
});
