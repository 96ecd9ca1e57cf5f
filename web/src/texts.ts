// The words of the page, in the language of its reader: the one that the link says, else the first of the
// browser's that is there. They are chosen once; another language is another loading of the page.

import { english, type Texts } from "./texts/english";
import { german } from "./texts/german";
import { greek } from "./texts/greek";

/** What a language calls itself, and its words. */
export const languages: Record<string, { name: string; texts: Texts }> = {
  en: { name: "English", texts: english },
  de: { name: "Deutsch", texts: german },
  el: { name: "Ελληνικά", texts: greek },
};

/** The language that a link says, if it is there. */
export function said(hash: string): string | undefined {
  const found = hash.match(/[?&]lang=(\w+)/)?.[1];
  return found !== undefined && found in languages ? found : undefined;
}

/** What the link said when the page was opened. */
export const chosen = said(location.hash);

export const language =
  chosen ?? navigator.languages.map((tag) => tag.split("-")[0]!).find((tag) => tag in languages) ?? "en";

/** The words in use. */
export const t: Texts = languages[language]!.texts;
