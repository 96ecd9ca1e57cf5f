// The live view over real processes: what a reader of the demonstration sees and does.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { picture, problems, program, start, tooWide } from "./lab.mjs";

const started = [];

/** Starts a process that ends with the test, and gives the first of its lines that has what is looked for. */
async function run(words, found, stream = "stdout") {
  const child = spawn(program, words, { stdio: ["ignore", "pipe", "pipe"] });
  started.push(child);
  child[stream === "stdout" ? "stderr" : "stdout"].resume();
  return new Promise((done, failed) => {
    child.on("exit", (code) => failed(new Error(`quorate ${words.join(" ")} ended with ${code}`)));
    createInterface({ input: child[stream] }).on("line", (line) => {
      const there = line.match(found);
      if (there) done({ child, found: there[0] });
    });
  });
}

function end() {
  for (const child of started.splice(0)) {
    child.removeAllListeners("exit");
    child.kill();
  }
}

const FORMS = {
  light: { size: { width: 1440, height: 900 } },
  dark: { size: { width: 1440, height: 900 }, dark: true },
  phone: { size: { width: 390, height: 844 } },
};

let lab;
let page;
let dev;
/** Pages that see the whole story and are looked at later. */
const others = {};

const options = { skip: !program };

before(async () => {
  if (!program) return;
  const { found } = await run(["dev", "--lab", "--json", "--members", "5", "--lease", "3s"], /\{.*\}/);
  dev = JSON.parse(found);
  const [address, hash] = dev.lab.split("#");
  lab = await start({ address, close: end });
  page = await lab.page(`#${hash}`, { still: true });
  await seated("a", "b", "c", "d", "e");
  for (const [form, given] of Object.entries(FORMS)) others[form] = await lab.page(`#${hash}`, { ...given, still: true });
});

after(() => (lab ? lab.close() : end()));

/** Waits until these are the members of the last view, and all of them say that they sit in it. */
async function seated(...names) {
  await page.waitForFunction(
    (names) => {
      const live = window.quorate?.live;
      if (!live || live.views.size === 0) return false;
      const epoch = Math.max(...live.views.keys());
      const sits = (name) => {
        const { status, state } = live.members.get(name) ?? {};
        return state === "runs" && status?.standing === "member" && status.epoch === epoch;
      };
      return live.views.get(epoch).toSorted().join() === names.join() && names.every(sits);
    },
    names,
    { timeout: 60_000 },
  );
}

const log = () => page.textContent(".live-log");
const state = (name, state) => page.waitForSelector(`.live-node[data-member=${name}][data-state=${state}]`);

test("the page shows the members, and keeps the key to itself", options, async () => {
  assert.equal(await page.locator(".live-node").count(), 5);
  assert.equal(await page.locator(".live-link").count(), 10);
  assert.ok(!page.url().includes("key="), page.url());
  await page.waitForFunction(() => /presides/.test(document.querySelector(".live-members").textContent));
  await page.waitForFunction(() => /leads the consensus/.test(document.querySelector(".summary").textContent));
});

const socket = (name) => dev.members.find((one) => one.name === name).socket;

test("a lock is shown with who holds it and who waits", options, async () => {
  const lock = (name) => ["lock", "--connect", socket(name), "nightly", "--", "sh", "-c", "echo held; sleep 600"];
  await run(lock("b"), /held/);
  const waiting = spawn(program, lock("c"), { stdio: "ignore" });
  started.push(waiting);
  await page.waitForFunction(() => /nightly.*b.*fence.*c.*waits/s.test(document.querySelector(".live-locks")?.textContent ?? ""));
  assert.match(await log(), /nightly is held by .* at b/);
});

test("a role is shown with who leads in it and who stands for it", options, async () => {
  const elect = (name) => ["elect", "--connect", socket(name), "primary", "--", "sh", "-c", "echo leads; sleep 600"];
  await run(elect("a"), /leads/);
  started.push(spawn(program, elect("b"), { stdio: "ignore" }));
  await page.waitForFunction(() => /primary.*a.*term.*b.*stands/s.test(document.querySelector(".live-roles")?.textContent ?? ""));
  assert.match(await log(), /primary is led by .* at a/);
});

test("a member that is killed by a click is seen dead, and the others go on without it", options, async () => {
  await page.click(".live-node[data-member=e]");
  await page.click(".bubble >> text=Kill");
  await state("e", "gone");
  await seated("a", "b", "c", "d");
  assert.match(await log(), /e is killed/);
  assert.match(await log(), /view …\d+ is decided: [abcd](, [abcd]){3}(?!, e)/);
  const spans = await page.evaluate(() => {
    const { views, gone } = window.quorate.live.members.get("e");
    return { sits: views.some((span) => span.to === undefined), dead: gone.filter((span) => span.to === undefined).length };
  });
  assert.deepEqual(spans, { sits: false, dead: 1 });
  // Those who wait and stand at other members still do.
  await page.waitForFunction(() => /nightly.*b.*fence.*c.*waits/s.test(document.querySelector(".live-locks").textContent));
  await page.waitForFunction(() => /primary.*a.*term.*b.*stands/s.test(document.querySelector(".live-roles").textContent));
});

test("a member that stands still loses its seat, and a link that is cut is down", options, async () => {
  await page.click("[data-member=d] button[aria-label^=Pause]");
  await state("d", "paused");
  await seated("a", "b", "c");
  await page.locator(".live-link[aria-label^='Link a – d']").focus();
  await page.keyboard.press("Enter");
  await page.click(".bubble >> text=Cut the link");
  await page.waitForSelector(".live-link[aria-label='Link a – d: cut']");
  const down = () => window.quorate.live.members.get("a").status.links.find((one) => one.name === "d").state !== "up";
  await page.waitForFunction(down);
  assert.match(await log(), /the link a – d is cut/);
});

for (const form of Object.keys(FORMS)) test(`live, ${form}`, options, () => shown(others[form], form));

/** Makes a picture of it, and looks for what is wrong with it. */
async function shown(other, form) {
  await other.waitForFunction(() => window.quorate?.live.members.get("d")?.state === "paused");
  await other.waitForSelector(".live-locks .live-held");
  // What is told before and after one another is seen when it has been told.
  await other.waitForFunction(() => window.quorate.live.log.value.length >= 6);
  await other.evaluate(() => document.fonts.ready);
  // Some time passes, so that there is something to see of the last view.
  await other.waitForTimeout(2500);
  await picture(other, `live-${form}`);
  assert.equal(await tooWide(other), 0, "nothing is cut off at the side");
  assert.deepEqual(await problems(other), []);
}

test("the picture can be held, and saved", options, async () => {
  await page.click(`button[aria-label^="Hold the picture"]`);
  const drawn = () => page.locator(".live .spacetime svg").evaluate((svg) => svg.outerHTML);
  const first = await drawn();
  await page.waitForTimeout(300);
  assert.equal((await drawn()).length, first.length, "it stands still");
  const saved = async (label) => {
    await page.click(".live-transport .menu > summary");
    const [download] = await Promise.all([page.waitForEvent("download"), page.click(`.menu-list >> text=${label}`)]);
    const parts = [];
    for await (const part of await download.createReadStream()) parts.push(part);
    return Buffer.concat(parts);
  };
  const svg = (await saved("Views over time, SVG")).toString();
  assert.ok(svg.startsWith("<svg") && /view …\d+/.test(svg), svg.slice(0, 200));
  assert.equal((await saved("Members and links, PNG")).subarray(1, 4).toString(), "PNG");
  const facts = (await saved("What was told, JSON lines")).toString().trim().split("\n").map((line) => JSON.parse(line));
  assert.ok(facts.some(({ fact, whom }) => fact === "kill" && whom === "e"));
  await page.click(`button[aria-label^="Follow it again"]`);
});

test("everything can be made well again", options, async () => {
  await page.click("text=Make all well");
  await seated("a", "b", "c", "d", "e");
  assert.equal(await page.evaluate(() => window.quorate.live.cuts.value.length), 0);
});

test("an agent shows its cluster, and lets nobody touch it", options, async () => {
  const data = mkdtempSync(join(tmpdir(), "quorate-agent-"));
  const free = createServer();
  await new Promise((done) => free.listen(0, "127.0.0.1", done));
  const { port } = free.address();
  await new Promise((done) => free.close(done));
  const words = ["agent", "--lab", "--name", "solo", "--data", data, "--seeds", `solo=127.0.0.1:${port}`, "--found", "--profile", "dev"];
  const { child, found } = await run(words, /http:\/\/[\d.:]+\/lab\/#\/live/, "stderr");
  const other = await lab.context.newPage();
  const complaints = [];
  other.on("console", (message) => ["error", "warning"].includes(message.type()) && complaints.push(message.text()));
  await other.goto(found);
  await other.waitForFunction(() => /solo.*member/s.test(document.querySelector(".live-members")?.textContent ?? ""));
  assert.equal(await other.locator(".live-members button").count(), 0);
  assert.deepEqual(complaints, []);
  await other.close();
  child.removeAllListeners("exit");
  const gone = new Promise((done) => child.on("exit", done));
  child.kill();
  await gone;
  rmSync(data, { recursive: true, force: true });
});
