// The page under test: served by `quorate lab` if there is one to run, and otherwise from its files.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliDecompressSync } from "node:zlib";
import { launch, serve } from "./browser.mjs";
import { indexed } from "./png.mjs";

const here = dirname(fileURLToPath(import.meta.url));
export const program = process.env.QUORATE;

/** Starts `quorate lab` and waits until it says where it is. */
async function lab() {
  const child = spawn(program, ["lab", "--no-open"], { stdio: ["ignore", "pipe", "inherit"] });
  const address = await new Promise((done, failed) => {
    let said = "";
    child.stdout.on("data", (part) => {
      said += part;
      const found = said.match(/http:\/\/\S+/);
      if (found) done(found[0]);
    });
    child.on("exit", (code) => failed(new Error(`quorate lab ended with ${code}`)));
  });
  return { address, close: () => child.kill() };
}

/** Pictures are made here. */
const out = join(here, "../../target/lab-pictures");
/** Those that README and guide show are kept here. */
const kept = join(here, "../../docs/pictures");
const KEPT = ["run-light", "interfere-light", "check-dark", "play-light", "compare-light", "quorums-light", "lecture-light", "live-light", "live-dark", "run-phone", "live-phone"];

/** Makes a picture of the page; with UPDATE set, those of the guide are written there. */
export async function picture(page, name) {
  mkdirSync(out, { recursive: true });
  const png = await page.screenshot();
  writeFileSync(join(out, `${name}.png`), png);
  if (process.env.UPDATE && KEPT.includes(name)) writeFileSync(join(kept, `lab-${name}.png`), await indexed(page.context(), png));
}

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** What is seriously wrong for those who do not see the page, or see it badly. */
export async function problems(page) {
  await page.evaluate(axe);
  return page.evaluate(async () => {
    const { violations } = await window.axe.run(document, { resultTypes: ["violations"] });
    return violations
      .filter(({ impact }) => impact === "serious" || impact === "critical")
      .map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map((node) => node.target.join(" ")).slice(0, 4).join(" | ")}`);
  });
}

/** Nothing is cut off at the side. */
export const tooWide = (page) => page.evaluate(() => Math.max(0, document.documentElement.scrollWidth - innerWidth));

/** For those who work on the page: its files come from a folder, and all else from a program that was built before. */
async function takeFiles(context, folder) {
  const types = { "lab.js": "text/javascript", "lab.css": "text/css", "worker.js": "text/javascript" };
  for (const [name, contentType] of Object.entries(types)) {
    const body = brotliDecompressSync(readFileSync(join(folder, `${name}.br`)));
    await context.route(`**/${name}`, (route) => route.fulfill({ body, contentType }));
  }
}

/** A browser with the page; whatever it complains about, and whomever it asks, is written down. */
export async function start(given) {
  const server = given ?? (program ? await lab() : await serve(process.env.DIST ?? join(here, "../dist")));
  const browser = await launch();
  if ((given || program) && process.env.DIST) await takeFiles(browser.context, process.env.DIST);
  const errors = [];
  const foreign = [];
  const watch = (page) => {
    page.on("console", (message) => {
      if (message.type() === "error" || message.type() === "warning") errors.push(message.text());
    });
    page.on("pageerror", (error) => errors.push(String(error)));
    page.on("request", (request) => {
      const url = request.url();
      if (!url.startsWith(server.address) && !/^(data|blob):/.test(url)) foreign.push(url);
    });
  };
  return {
    address: server.address,
    errors,
    foreign,
    context: browser.context,
    async page(hash = "", options = {}) {
      const page = await browser.context.newPage();
      watch(page);
      if (options.size) await page.setViewportSize(options.size);
      await page.emulateMedia({ colorScheme: options.dark ? "dark" : "light", reducedMotion: options.still ? "reduce" : null });
      await page.goto(server.address + hash);
      return page;
    },
    /** Ends it. It has had nothing to complain of. */
    async close() {
      await browser.close();
      server.close();
      assert.deepEqual(errors, [], "the console has no errors");
      assert.deepEqual(foreign, [], "no other host is asked");
    },
  };
}

/** Waits until a run is shown and nothing is being worked on. */
export async function settled(page, session = "session") {
  await page.waitForFunction(
    (name) => {
      const it = window.quorate?.[name];
      return it && !it.busy.value && (it.story.value || it.refused.value || it.answer.value);
    },
    session,
    { timeout: 60_000 },
  );
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
}

/** Goes to another place of the page without loading it anew. */
export async function visit(page, hash, session = "session") {
  await page.evaluate((hash) => {
    location.hash = hash;
  }, hash);
  await page.evaluate(() => new Promise((done) => setTimeout(done, 0)));
  await settled(page, session);
}

/** What `quorate` prints with these arguments, as JSON; its exit code may be 1. */
export function quorate(words) {
  try {
    return JSON.parse(execFileSync(program, words, { encoding: "utf8", maxBuffer: 1 << 28, stdio: ["ignore", "pipe", "pipe"] }));
  } catch (error) {
    if (error.status === 1) return JSON.parse(error.stdout);
    throw new Error(`quorate ${words.join(" ")}: ${error.stderr}`);
  }
}

/** Where something stands in the picture of the topology, on the screen. */
export async function spot(page, target) {
  return page.evaluate((target) => {
    const canvas = document.querySelector(".picture.topology canvas");
    const box = canvas.getBoundingClientRect();
    const [x, y] = window.quorate.where(target);
    return [box.left + x, box.top + y];
  }, target);
}
