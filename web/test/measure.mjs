// Measures the page in the browser: how soon there is a picture, and how long frames take. It says what it
// finds and asserts nothing: what a machine does under load is no fault of the page.
//
//   QUORATE=path/to/quorate node test/measure.mjs

import { settled, start } from "./lab.mjs";

const lab = await start();
const median = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)] ?? NaN;
const round = (value) => Math.round(value * 10) / 10;

const pictures = [];
for (let i = 0; i < 5; i++) {
  const page = await lab.page("");
  await settled(page);
  pictures.push(await page.evaluate(() => window.quorate.firstPicture));
  await page.close();
}
console.log(`first picture: ${pictures.map(round).join(", ")} ms after the page began to load`);

const page = await lab.page("#/run/mutex/ricart-agrawala?nodes=50&requests=2&latency=uniform:0.5..1.5");
await settled(page);
for (const speed of [0.25, 1, 4]) {
  await page.evaluate((speed) => {
    const { player } = window.quorate.session;
    player.jump(0);
    player.speed.value = speed;
    player.play();
  }, speed);
  await page.waitForTimeout(4000);
  const { frames, draws, flying } = await page.evaluate(() => {
    const { player, story } = window.quorate.session;
    player.pause();
    let flying = 0;
    story.value.inFlight(player.records.value, () => flying++);
    return { frames: [...player.frames], draws: [...player.draws], flying };
  });
  console.log(
    `N = 50 at ${speed}x: ${frames.length} frames, median ${round(median(frames))} ms, of that drawing ${round(median(draws))} ms; ${flying} messages under way at the end`,
  );
}
await page.evaluate(() => (location.hash = "#/run/mutex/ricart-agrawala?nodes=50&requests=21"));
await page.waitForFunction(() => window.quorate.session.story.value.arrowCount > 100_000);
await settled(page);
const box = await page.locator(".picture.spacetime canvas").boundingBox();
await page.mouse.move(box.x + 300, box.y + 100);
await page.evaluate(() => (window.quorate.session.player.draws.length = 0));
for (let i = 0; i < 60; i++) await page.mouse.wheel(0, 120);
await page.waitForTimeout(500);
const draws = await page.evaluate(() => [...window.quorate.session.player.draws]);
console.log(`10^5 messages, scrolled: ${draws.length} frames drawn, median ${round(median(draws))} ms`);
await lab.close();
process.exit(0);
