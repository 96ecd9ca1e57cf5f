// Running, stepping, interfering, sharing.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { program, quorate, settled, spot, start, visit } from "./lab.mjs";

let lab;
let page;

before(async () => {
  lab = await start();
  page = await lab.page("#/run/mutex/ricart-agrawala");
  await settled(page);
});

after(() => lab.close());

const state = () =>
  page.evaluate(() => {
    const { player, story, answer } = window.quorate.session;
    return {
      records: player.records.value,
      count: story.value.recordCount,
      time: player.time,
      report: answer.value.report,
      hash: location.hash,
    };
  });

test("every algorithm runs, steps back and forth, and ends as it does on the command line", async () => {
  const names = await page.evaluate(() => window.quorate.catalogue().algorithms.map((one) => one.name));
  assert.ok(names.length >= 40, `${names.length} algorithms`);
  for (const name of names) {
    await visit(page, `#/run/${name}`);
    await page.waitForFunction((name) => window.quorate.session.story.value?.algorithm === name, name);
    await settled(page);
    await page.keyboard.press("End");
    const end = await state();
    assert.equal(end.records, end.count, name);
    assert.ok(end.count > 3, name);
    await page.keyboard.press("Home");
    assert.equal((await state()).records, 0, name);
    const steps = Math.min(6, end.count);
    for (let i = 0; i < steps; i++) await page.keyboard.press("ArrowRight");
    await page.waitForFunction((steps) => window.quorate.session.player.records.value === steps, steps);
    for (let i = 0; i < 2; i++) await page.keyboard.press("ArrowLeft");
    await page.waitForFunction((steps) => window.quorate.session.player.records.value === steps - 2, steps);
    if (!program) continue;
    const words = decodeURIComponent(end.hash.split("?")[1] ?? "")
      .split("&")
      .flatMap((pair) => [`--${pair.split("=")[0]}`, pair.split("=").slice(1).join("=")]);
    assert.deepEqual(end.report, quorate(["sim", name, ...words, "--json"]), name);
  }
});

test("states of nodes are shown, in the paper's names", async () => {
  await visit(page, "#/run/mutex/ricart-agrawala?nodes=5&requests=1&latency=uniform:0.5..1.5");
  await page.evaluate(() => window.quorate.session.player.jump(14));
  await page.waitForSelector(".state .paper");
  const text = await page.textContent(".inspector");
  assert.match(text, /Reply_Deferred\[1:N\]/);
  assert.match(text, /Lamport/);
  const rule = await page.textContent(".rule");
  assert.ok(rule.length > 5, rule);
});

test("a crash by a click blocks Ricart and Agrawala's, and the page says why", async () => {
  await visit(page, "#/run/mutex/ricart-agrawala?nodes=5&requests=1&latency=uniform:0.5..1.5");
  await page.keyboard.press("Home");
  for (let i = 0; i < 12; i++) await page.keyboard.press("ArrowRight");
  await page.waitForFunction(() => window.quorate.session.player.records.value === 12);
  const before = await page.evaluate(() => Array.from(window.quorate.session.story.value.rAt.slice(0, 12)));
  await page.mouse.click(...(await spot(page, { kind: "node", node: 1 })));
  await page.click(".bubble >> text=Crash");
  await page.waitForFunction(() => location.hash.includes("crash=2@"));
  await settled(page);
  const now = await page.evaluate(() => ({
    prefix: Array.from(window.quorate.session.story.value.rAt.slice(0, 12)),
    records: window.quorate.session.player.records.value,
  }));
  assert.deepEqual(now.prefix, before, "what happened before stays");
  assert.equal(now.records, 12, "the run goes on from there");
  await page.keyboard.press("End");
  await page.waitForSelector(".verdicts.bad");
  const why = await page.textContent(".verdicts .why");
  assert.match(why, /liveness.*deadlock/);
  assert.match(why, /Node 2 is down since/);
  assert.match(why, /One lost message or one crashed node/);
  assert.match(why, /Those who wait for ever: 1, 3, 4, 5/);
});

test("messages are lost, delayed and doubled by a click, and that can be undone", async () => {
  const base = "#/run/mutex/ricart-agrawala?nodes=3&requests=1&latency=uniform:0.5..1.5";
  for (const [button, found] of [
    ["Lose", "lose:"],
    ["Delay", "delay:"],
    ["Double", "repeat:"],
  ]) {
    await visit(page, base);
    await page.evaluate(() => window.quorate.session.player.jump(6));
    const arrow = await page.evaluate(() => {
      const { story, player } = window.quorate.session;
      let first = -1;
      story.value.inFlight(player.records.value, (arrow) => (first = first < 0 ? arrow : first));
      window.quorate.session.selected.value = { kind: "message", arrow: first };
      return first;
    });
    assert.ok(arrow >= 0);
    await page.click(`.bubble >> text=${button}`);
    await page.waitForFunction((found) => decodeURIComponent(location.hash).includes(`tamper=${found}`), found);
    await settled(page);
    const story = await page.evaluate(() => ({
      lost: window.quorate.session.answer.value.report.lost,
      doubled: window.quorate.session.answer.value.report.duplicated,
    }));
    if (button === "Lose") assert.equal(story.lost, 1);
    if (button === "Double") assert.equal(story.doubled, 1);
    await page.click(".faults .icon-button");
    await page.waitForFunction(() => !location.hash.includes("tamper"));
    await settled(page);
  }
});

test("links are cut and slowed, nodes paused and recovered", async () => {
  await visit(page, "#/run/mutex/lamport?nodes=4&requests=2");
  await page.evaluate(() => window.quorate.session.player.jump(9));
  const pick = (target) => page.evaluate((target) => (window.quorate.session.selected.value = target), target);
  await pick({ kind: "link", from: 0, to: 1 });
  await page.click(".bubble >> text=/^Cut$/");
  await page.waitForFunction(() => location.hash.includes("cut=1-2@"));
  await settled(page);
  assert.ok(await page.evaluate(() => window.quorate.session.answer.value.report.lost > 0));
  await visit(page, "#/run/mutex/lamport?nodes=4&requests=2");
  const plain = await page.evaluate(() => window.quorate.session.story.value.end);
  await page.evaluate(() => window.quorate.session.player.jump(9));
  await pick({ kind: "link", from: 0, to: 1 });
  await page.click(".bubble >> text=Slow");
  await page.waitForFunction(() => location.hash.includes("tamper=delay"));
  await settled(page);
  assert.ok(await page.evaluate((plain) => window.quorate.session.story.value.end > plain, plain));
  await pick({ kind: "node", node: 2 });
  await page.click(".bubble >> text=Pause");
  await page.waitForFunction(() => location.hash.includes("pause-node=3@"));
  await settled(page);
  await pick({ kind: "node", node: 0 });
  await page.click(".bubble >> text=Crash");
  await page.waitForFunction(() => location.hash.includes("crash=1@"));
  await settled(page);
  await page.evaluate(() => window.quorate.session.player.seek("fault", 1));
  await page.keyboard.press("End");
  await pick({ kind: "node", node: 0 });
  await page.click(".bubble >> text=Recover");
  await page.waitForFunction(() => location.hash.includes("recover=1@"));
  await settled(page);
});

test("a link restores a run at its moment, with what was done to it", async () => {
  await visit(page, "#/run/election/bully?nodes=5&crash=5@0&initiators=nodes:1&tamper=lose:1.1-2");
  await page.evaluate(() => window.quorate.session.player.jump(7));
  await page.click(`button[aria-label="Copy a link to this"]`);
  const link = await page.evaluate(() => location.href);
  const report = await page.evaluate(() => window.quorate.session.answer.value.report);
  const other = await lab.page(new URL(link).hash);
  await settled(other);
  const restored = await other.evaluate(() => ({
    records: window.quorate.session.player.records.value,
    report: window.quorate.session.answer.value.report,
  }));
  assert.equal(restored.records, 7);
  assert.deepEqual(restored.report, report);
  await other.close();
  if (program) {
    const words = ["--nodes", "5", "--crash", "5@0", "--initiators", "nodes:1", "--tamper", "lose:1.1-2"];
    assert.deepEqual(report, quorate(["sim", "election/bully", ...words, "--json"]));
  }
});

test("causal past and future are those of the vector clocks", async () => {
  await visit(page, "#/run/mutex/lamport?nodes=4&requests=1&latency=uniform:0.5..1.5");
  const wrong = await page.evaluate(() => {
    const story = window.quorate.session.story.value;
    const clocks = Array.from({ length: story.recordCount }, (_, r) => story.vector(r));
    const before = (a, b) => clocks[a].every((count, i) => count <= clocks[b][i]);
    let wrong = 0;
    for (let r = 0; r < story.recordCount; r++) {
      const [past, future] = [story.past(r), story.future(r)];
      for (let other = 0; other < story.recordCount; other++) {
        if (story.rWhat[other] >= 11 || story.rWhat[r] >= 11) continue;
        if ((past[other] === 1) !== before(other, r)) wrong++;
        if ((future[other] === 1) !== before(r, other)) wrong++;
      }
    }
    return wrong;
  });
  assert.equal(wrong, 0);
  await page.evaluate(() => window.quorate.session.player.jump(20));
  await page.keyboard.press("p");
  assert.equal(await page.evaluate(() => window.quorate.session.cone.value?.side), "past");
  await page.keyboard.press("Escape");
  assert.equal(await page.evaluate(() => window.quorate.session.cone.value), undefined);
});

test("bad words are refused in a sentence at their field, and the last picture stays", async () => {
  await visit(page, "#/run/mutex/maekawa?nodes=8&quorum=weighted:1,1&requests=1");
  await page.waitForSelector(".refused, .field .error");
  const text = await page.textContent(".middle .refused");
  assert.match(text, /quorum/);
  await visit(page, "#/run/mutex/lamport?nodes=many");
  await page.waitForSelector(".refused");
  assert.match(await page.textContent(".refused"), /many is not a number/);
  await visit(page, "#/run/mutex/lamport?nodes=3&requests=1");
  await page.waitForSelector(".refused", { state: "detached" });
});

test("keys find entries, the finder finds algorithms, the legend names kinds", async () => {
  await visit(page, "#/run/mutex/central?nodes=4&requests=1");
  await page.keyboard.press("Home");
  await page.keyboard.press("Shift+ArrowRight");
  const inside = await page.evaluate(() => {
    const { story, player } = window.quorate.session;
    const node = story.value.rNode[player.records.value - 1];
    return story.value.doing(node, player.records.value).phase;
  });
  assert.equal(inside, 1, "somebody is inside");
  assert.match(await page.textContent(".legend"), /REQUEST/);
  await page.keyboard.press("Control+k");
  await page.keyboard.type("suzuki");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => window.quorate.session.story.value?.algorithm === "mutex/suzuki-kasami");
});

test("pictures and traces can be saved, and the trace is that of the command line", async () => {
  await visit(page, "#/run/mutex/central?nodes=3&requests=1");
  const saved = async (label) => {
    await page.click(".transport .menu > summary");
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.click(`.transport .menu-list >> text=${label}`),
    ]);
    const stream = await download.createReadStream();
    const parts = [];
    for await (const part of stream) parts.push(part);
    return Buffer.concat(parts);
  };
  assert.match((await saved("Space-time diagram, SVG")).toString(), /^<svg/);
  assert.match((await saved("Topology, SVG")).toString(), /^<svg/);
  assert.equal((await saved("Space-time diagram, PNG")).subarray(1, 4).toString(), "PNG");
  assert.equal((await saved("Topology, PNG")).subarray(1, 4).toString(), "PNG");
  assert.match((await saved("ShiViz log")).toString(), /^n1 \{"n1":1\}/);
  const trace = (await saved("Trace, JSON lines")).toString().trim().split("\n");
  assert.equal(trace.at(-1), '{"end":true}');
  assert.match((await saved("Report, JSON")).toString(), /"messages_per_entry"/);
});

test("a hundred thousand messages are shown, scrolled and zoomed", async () => {
  await visit(page, "#/run/mutex/ricart-agrawala?nodes=50&requests=21");
  const count = await page.evaluate(() => window.quorate.session.story.value.arrowCount);
  assert.ok(count >= 100_000, `${count} messages`);
  const box = await page.locator(".picture.spacetime canvas").boundingBox();
  await page.mouse.move(box.x + 300, box.y + 100);
  const windows = new Set();
  for (let i = 0; i < 10; i++) {
    await page.mouse.wheel(0, 900);
    windows.add(await page.evaluate(() => window.quorate.window().join()));
  }
  assert.ok(windows.size > 5, "it scrolls");
  await page.evaluate(() => window.quorate.session.player.jump(60_000));
  await page.keyboard.press("-");
  await page.keyboard.press("-");
});

const median = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];

test("fifty nodes are drawn fast enough for sixty pictures a second", async () => {
  await visit(page, "#/run/mutex/ricart-agrawala?nodes=50&requests=2&latency=uniform:0.5..1.5");
  await page.waitForFunction(() => window.quorate.session.story.value.nodes === 50);
  // How long drawing takes is the page's doing, when frames come is the machine's: the best of three counts.
  const costs = [];
  for (let i = 0; i < 3; i++) {
    const draws = await page.evaluate(async () => {
      const { player } = window.quorate.session;
      player.jump(0);
      player.draws.length = 0;
      player.play();
      const begun = performance.now();
      while (player.draws.length < 60 && performance.now() - begun < 10_000) {
        await new Promise((done) => requestAnimationFrame(done));
      }
      player.pause();
      return [...player.draws];
    });
    assert.ok(draws.length >= 30, `${draws.length} pictures`);
    costs.push(median(draws));
  }
  assert.ok(Math.min(...costs) < 16.7, `a picture takes ${costs} ms`);
});

test("the first picture is there within a second", async () => {
  const times = [];
  for (let i = 0; i < 5; i++) {
    const other = await lab.page("");
    await settled(other);
    times.push(await other.evaluate(() => window.quorate.firstPicture));
    await other.close();
    if (times.at(-1) < 1000) break;
  }
  assert.ok(Math.min(...times) < 1000, `${times} ms`);
});
