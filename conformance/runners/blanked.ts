/** Texts of a recording without the places of the machine it was made on, in every form in which programs write a path. */
import { homedir, tmpdir } from "node:os";
import path from "node:path";

export type Word = readonly [found: string, instead: string];

const CHECKOUT = path.join(import.meta.dirname, "..", "..");

/** Of every recording made here. */
const OF_THE_MACHINE: readonly Word[] = [
  [path.join(CHECKOUT, "conformance", "node_modules"), "/home/dev/programs"],
  [path.join(CHECKOUT, "node_modules"), "/home/dev/programs"],
  [CHECKOUT, "/home/dev/heddle"],
  [path.dirname(process.execPath), "/usr/bin"],
  [homedir(), "/home/dev"],
  [tmpdir(), "/tmp"],
];

/** A path as it is, in an address, and as the name of a folder that keeps what belongs to it. */
function formsOf(text: string): readonly string[] {
  const plain = [text, encodeURIComponent(text)];
  // Of a folder at the top that would be a word like others.
  if (!path.dirname(text).slice(1)) return plain;
  return [...plain, text.replaceAll(/[^A-Za-z0-9]/g, "-"), text.replaceAll("/", "-")];
}

export function blanker(own: readonly Word[], ofMachine = OF_THE_MACHINE): (text: string) => string {
  // A place lies in another one: the longer goes first.
  const words = [...own, ...ofMachine]
    .filter(([found, instead]) => found !== instead)
    .toSorted(([one], [other]) => other.length - one.length);
  const pairs = words.flatMap(([found, instead]) => {
    const written = formsOf(instead);
    return formsOf(found).map((form, nth): Word => [form, written[nth] ?? instead]);
  });
  return (text) => pairs.reduce((all, [found, instead]) => all.replaceAll(found, instead), text);
}
