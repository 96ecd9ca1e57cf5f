// The languages of the page: each says all that English says, with what is put into it.

import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { settled, start, tooWide } from "./lab.mjs";

const here = dirname(fileURLToPath(import.meta.url));

/** The words of a language, by where they stand. */
async function texts(language) {
  const bundled = await build({
    entryPoints: [join(here, `../src/texts/${language}.ts`)],
    bundle: true,
    write: false,
    format: "esm",
  });
  const source = Buffer.from(bundled.outputFiles[0].contents).toString("base64");
  const module = await import(`data:text/javascript;base64,${source}`);
  return new Map(flat("", module[language]));
}

function flat(path, value) {
  if (typeof value !== "object") return [[path, value]];
  return Object.entries(value).flatMap(([key, part]) => flat(`${path}/${key}`, part));
}

/** What stands where something is put in. */
const given = (length) => Array.from({ length }, (_, place) => `⟦${place}⟧`);
const spoken = (text) => (typeof text === "function" ? text(...given(text.length)) : text);
const holes = (text) => [...spoken(text).matchAll(/⟦\d+⟧/g)].map(([hole]) => hole).sort();

const LANGUAGES = { german: "de", greek: "el" };
const english = await texts("english");

for (const name of Object.keys(LANGUAGES)) {
  test(`${name} says all that English says`, async () => {
    const other = await texts(name);
    assert.deepEqual([...other.keys()].sort(), [...english.keys()].sort());
    for (const [path, text] of english) {
      const said = other.get(path);
      assert.equal(typeof said, typeof text, path);
      assert.ok(spoken(said).trim() !== "" || spoken(text).trim() === "", `${path} says nothing`);
      assert.deepEqual(holes(said), holes(text), path);
    }
  });

  test(`${name} is ${name}`, async () => {
    const other = await texts(name);
    const words = [...english].filter(([path, text]) => /[a-z]{3} [a-z]{3}/i.test(spoken(text)) && !/^\/keys\/list\/\d+\/0$/.test(path) && !/^quorate /.test(spoken(text)));
    const same = words.filter(([path, text]) => spoken(other.get(path)) === spoken(text)).map(([path]) => path);
    assert.ok(words.length > 200, `${words.length} sentences`);
    assert.deepEqual(same, [], "is left in English");
  });
}

let lab;

before(async () => {
  lab = await start();
});

after(() => lab.close());

const heard = (page) => page.evaluate(() => [document.documentElement.lang, document.querySelector("nav").textContent]);

test("the browser says which language, and the link says it louder", async () => {
  const page = await lab.context.newPage();
  await page.addInitScript(() => Object.defineProperty(navigator, "languages", { get: () => ["fr", "de-AT", "en"] }));
  await page.goto(`${lab.address}#/run/mutex/central?nodes=3&requests=1`);
  await settled(page);
  assert.match((await heard(page)).join(" "), /^de .*Prüfen/);
  assert.ok(!page.url().includes("lang="), "what the browser says is not in the link");
  await page.click(".head .menu > summary");
  await Promise.all([page.waitForEvent("load"), page.click(".menu-list >> text=Ελληνικά")]);
  await settled(page);
  assert.match((await heard(page)).join(" "), /^el .*Έλεγχος/);
  assert.match(page.url(), /#\/run\/mutex\/central\?nodes=3&requests=1&lang=el$/);
  // It stays when one goes elsewhere, and is no word of the run.
  await page.click("nav a[href='#/quorums']");
  await page.waitForFunction(() => /#\/quorums.*[?&]lang=el$/.test(location.hash));
  assert.match((await heard(page)).join(" "), /^el /);
  await page.close();
});

for (const language of Object.values(LANGUAGES)) {
  test(`nothing is cut off in ${language}`, async () => {
    for (const size of [{ width: 1440, height: 900 }, { width: 390, height: 844 }]) {
      const page = await lab.page(`#/run/mutex/ricart-agrawala?nodes=5&requests=1&lang=${language}`, { size, still: true });
      await settled(page);
      for (const view of ["run", "check", "play", "compare", "quorums", "learn", "traces", "live"]) {
        await page.click(`nav a[href='#/${view}']`);
        await page.waitForSelector(`.view-${view}`);
        assert.equal(await tooWide(page), 0, `${view} at ${size.width}`);
        const nav = await page.evaluate(() => {
          const links = [...document.querySelectorAll("nav a")].map((one) => one.getBoundingClientRect());
          return links.every((one, i) => one.right <= innerWidth && (i === 0 || one.left >= links[i - 1].right));
        });
        assert.ok(nav, `the views have room in ${view} at ${size.width}`);
        const cut = await page.evaluate(() =>
          [...document.querySelectorAll("button, .button, nav a span, h1, h2")]
            .filter((one) => one.clientWidth > 0 && one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).overflow !== "visible")
            .map((one) => one.textContent),
        );
        assert.deepEqual(cut, [], `${view} at ${size.width}`);
      }
      await page.close();
    }
  });
}
