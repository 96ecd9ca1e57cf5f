// Where one is, as a link: `#/run/mutex/lamport?nodes=3&crash=2@4`. The words are those of the command
// line, so that a link can be read, and typed.

import { signal } from "@preact/signals";
import { chosen, said as saidLanguage } from "../texts";

export type Word = [name: string, text: string];

export interface Place {
  /** `run`, `check`, `play`, … */
  view: string;
  /** What the view is about: an algorithm, a lecture. */
  about: string;
  words: Word[];
}

/** Words that say something of the page, not of a run. */
const OF_PAGE = new Set(["at", "moves", "find"]);

export function read(hash: string): Place {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const [view = "", ...about] = path.split("/");
  const words: Word[] = [];
  for (const part of query.split("&")) {
    if (part === "") continue;
    const [name = "", text = ""] = part.split("=", 2);
    // The language is that of the page, wherever one is in it.
    if (name !== "lang") words.push([decode(name), decode(text)]);
  }
  return { view: view || "home", about: about.map(decode).join("/"), words };
}

export function write(place: Place, language = chosen): string {
  const words: Word[] = language === undefined ? place.words : [...place.words, ["lang", language]];
  const query = words.map(([name, text]) => `${encode(name)}=${encode(text)}`).join("&");
  const about = place.about === "" ? "" : `/${place.about.split("/").map(encode).join("/")}`;
  return `#/${place.view}${about}${query === "" ? "" : `?${query}`}`;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", "%2B"));
  } catch {
    return text;
  }
}

/** What can stand in a link as it is does, so that people can read it. */
function encode(text: string): string {
  return encodeURIComponent(text)
    .replaceAll("%40", "@")
    .replaceAll("%3A", ":")
    .replaceAll("%2C", ",")
    .replaceAll("%2F", "/")
    .replaceAll("%7C", "|")
    .replaceAll("%2B", "+");
}

export const here = signal<Place>(read(location.hash));

addEventListener("hashchange", () => {
  const language = saidLanguage(location.hash);
  if (language !== undefined && language !== chosen) {
    location.reload();
    return;
  }
  here.value = read(location.hash);
  // Links within the page do not say it.
  if (language !== chosen) history.replaceState(null, "", write(here.value));
});

/** The same in another language. */
export function speak(language: string): void {
  location.hash = write(here.peek(), language);
}

/** Goes there; `quietly`, so that going back passes over where one was. */
export function go(place: Place, quietly = false): void {
  const hash = write(place);
  if (hash === location.hash) return;
  if (quietly) history.replaceState(null, "", hash);
  else history.pushState(null, "", hash);
  here.value = place;
}

export function word(words: Word[], name: string): string | undefined {
  return words.find(([known]) => known === name)?.[1];
}

export function all(words: Word[], name: string): string[] {
  return words.filter(([known]) => known === name).map(([, text]) => text);
}

/** The words with this one said once, or not at all. */
export function said(words: Word[], name: string, text: string | undefined): Word[] {
  const rest = words.filter(([known]) => known !== name);
  return text === undefined || text === "" ? rest : [...rest, [name, text]];
}

/** The words that are said of the run. */
export function ofRun(words: Word[]): Word[] {
  return words.filter(([name]) => !OF_PAGE.has(name));
}

/** What one would type to have the same on a command line. */
export function command(task: string, about: string, words: Word[]): string {
  const quote = (text: string) => (/^[\w.,:@/+*=-]+$/.test(text) ? text : `'${text}'`);
  const flags = ofRun(words).map(([name, text]) => (text === "" ? `--${name}` : `--${name} ${quote(text)}`));
  return ["quorate", task, about, ...flags].join(" ");
}
