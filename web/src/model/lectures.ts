// The lectures of the guide, as they stand there.

import l01 from "../../../docs/guide/lectures/01-central.md";
import l02 from "../../../docs/guide/lectures/02-lamport.md";
import l03 from "../../../docs/guide/lectures/03-ricart-agrawala.md";
import l04 from "../../../docs/guide/lectures/04-quorums.md";
import l05 from "../../../docs/guide/lectures/05-tokens.md";
import l06 from "../../../docs/guide/lectures/06-raymond.md";
import l07 from "../../../docs/guide/lectures/07-rings.md";
import l08 from "../../../docs/guide/lectures/08-trees-and-graphs.md";
import l09 from "../../../docs/guide/lectures/09-bully.md";
import l10 from "../../../docs/guide/lectures/10-multicast.md";
import l11 from "../../../docs/guide/lectures/11-virtual-synchrony.md";
import l12 from "../../../docs/guide/lectures/12-for-real.md";

export interface Lecture {
  id: string;
  title: string;
  text: string;
}

const ALL: [string, string][] = [
  ["01-central", l01],
  ["02-lamport", l02],
  ["03-ricart-agrawala", l03],
  ["04-quorums", l04],
  ["05-tokens", l05],
  ["06-raymond", l06],
  ["07-rings", l07],
  ["08-trees-and-graphs", l08],
  ["09-bully", l09],
  ["10-multicast", l10],
  ["11-virtual-synchrony", l11],
  ["12-for-real", l12],
];

export const lectures: Lecture[] = ALL.map(([id, text]) => {
  const [title = "", ...rest] = text.split("\n");
  return { id, title: title.replace(/^# /, ""), text: rest.join("\n") };
});
