// How it looks: pictures of every view in light and dark and on a phone, and no serious problem for those
// who do not see them.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { picture, problems, settled, start, tooWide } from "./lab.mjs";

const VIEWS = [
  {
    name: "run",
    hash: "#/run/mutex/ricart-agrawala?nodes=5&requests=1&latency=uniform:0.5..1.5&at=33",
    session: "session",
  },
  {
    name: "interfere",
    hash: "#/run/mutex/ricart-agrawala?nodes=5&requests=1&latency=uniform:0.5..1.5&crash=2@1.2&at=41",
    session: "session",
  },
  { name: "ring", hash: "#/run/election/chang-roberts?nodes=9&ids=random&at=26", session: "session" },
  { name: "group", hash: "#/run/group/virtual-synchrony?nodes=4&messages=2&crash=4@4&at=50", session: "session" },
  { name: "check", hash: "#/check/mutex/maekawa-basic", session: "checked" },
  { name: "play", hash: "#/play/mutex/ricart-agrawala?nodes=2&flaw=IgnoreTies&moves=c1,c2", session: "played" },
  { name: "compare", hash: "#/compare/mutex?sizes=4,9,16", ready: ".figures-table tbody tr:nth-child(15)" },
  { name: "quorums", hash: "#/quorums/grid?nodes=16", ready: ".chart path" },
  { name: "learn", hash: "#/learn", ready: ".algorithm-list li" },
  { name: "lecture", hash: "#/learn/02-lamport", session: "learned", at: 22 },
  { name: "algorithm", hash: "#/learn/mutex/raymond", session: "learned", at: 18 },
  { name: "traces", hash: "#/traces", ready: ".drop" },
  { name: "nothing-live", hash: "#/live", ready: ".live-ways" },
];

let lab;

before(async () => {
  lab = await start();
});

after(() => lab.close());

async function ready(page, view) {
  if (view.session) await settled(page, view.session);
  if (view.ready) await page.waitForSelector(view.ready, { timeout: 60_000 });
  if (view.at) {
    await page.evaluate(({ session, at }) => window.quorate[session].player.jump(at), view);
  }
  if (view.name === "compare") {
    await page.waitForFunction(() => document.querySelector(".progress")?.textContent === "", null, { timeout: 60_000 });
  }
  await page.evaluate(() => document.fonts.ready);
  // What is shown of a state is asked for a little later.
  await page.waitForTimeout(350);
}

for (const [form, options] of [
  ["light", { size: { width: 1440, height: 900 } }],
  ["dark", { size: { width: 1440, height: 900 }, dark: true }],
  ["phone", { size: { width: 390, height: 844 } }],
]) {
  for (const view of VIEWS) {
    test(`${view.name}, ${form}`, async () => {
      const page = await lab.page(view.hash, { ...options, still: true });
      await ready(page, view);
      await picture(page, `${view.name}-${form}`);
      assert.equal(await tooWide(page), 0, "nothing is cut off at the side");
      assert.deepEqual(await problems(page), []);
      await page.close();
    });
  }
}
