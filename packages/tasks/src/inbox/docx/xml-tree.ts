/**
 * Parses XML into a tree: elements, attributes, text, CDATA. Comments and instructions are skipped. Document types, which
 * can make text grow or load it from elsewhere, are refused, and so are entities beyond the five predefined ones.
 */
import { HeddleError } from "@heddle/protocol";

export interface XmlElement {
  /** Without a prefix: of the requested namespace. `mc:Choice`, `:t`: of another one, or of none. */
  readonly name: string;
  /** As written; `attributeOf` reads one of them. */
  readonly attributes: string;
  readonly children: (XmlElement | string)[];
}

/** Documents are some thirty deep. */
const MAX_DEPTH = 200;
/** Of a hundred pages; each is an object in memory. */
const MAX_ELEMENTS = 250_000;

/** The root, which declares one of these namespaces. Throws `task.invalid`. */
export function parseXml(text: string, namespaces: ReadonlySet<string>): XmlElement {
  const root: XmlElement = { name: "", attributes: "", children: [] };
  const open: XmlElement[] = [root];
  let prefix: string | undefined;
  let elements = 0;
  let at = text.startsWith("\uFEFF") ? 1 : 0;
  while (at < text.length) {
    const inside = open.at(-1) ?? root;
    const next = text.indexOf("<", at);
    const end = next === -1 ? text.length : next;
    if (end > at) inside.children.push(decoded(text.slice(at, end)));
    if (next === -1) break;
    if (text.startsWith("<!--", next)) at = after(text, "-->", next + 4);
    else if (text.startsWith("<?", next)) at = after(text, "?>", next + 2);
    else if (text.startsWith("<![CDATA[", next)) {
      at = after(text, "]]>", next + 9);
      inside.children.push(plain(text.slice(next + 9, at - 3)));
    } else if (text.startsWith("<!", next)) {
      throw refused("it has a document type, which documents of a word processor never have");
    } else if (text.startsWith("</", next)) {
      at = after(text, ">", next + 2);
      if (open.length === 1 || nameIn(prefix, text.slice(next + 2, at - 1).trimEnd()) !== inside.name)
        throw damaged("its elements are not closed in order");
      open.pop();
    } else {
      at = tagEnd(text, next + 1);
      const isEmpty = text[at - 2] === "/";
      const { name, attributes } = tagOf(text.slice(next + 1, at - (isEmpty ? 2 : 1)));
      prefix ??= prefixOf(attributes, namespaces);
      const element = { name: nameIn(prefix, name), attributes, children: [] };
      inside.children.push(element);
      if ((elements += 1) > MAX_ELEMENTS)
        throw refused(`it has over ${MAX_ELEMENTS} elements; a task is a page or two`);
      if (!isEmpty && open.push(element) > MAX_DEPTH) throw refused(`it is nested more than ${MAX_DEPTH} deep`);
    }
  }
  const [first, second] = elementsOf(root);
  if (open.length !== 1 || first === undefined || second !== undefined) throw damaged("it ends too early");
  return first;
}

export function elementsOf({ children }: XmlElement): readonly XmlElement[] {
  return children.filter((child) => typeof child !== "string");
}

export function attributeOf({ attributes }: XmlElement, wanted: string): string | undefined {
  for (const [name, value] of attributesOf(attributes))
    if (name === wanted || name.endsWith(`:${wanted}`)) return decoded(value);
  return undefined;
}

function* attributesOf(attributes: string): Generator<readonly [name: string, value: string]> {
  // Sticky, because searching further on would take quadratic time.
  const attribute = /\s+([^\s=]+)\s*=\s*(?:"([^"]*)"|'([^']*)')/y;
  for (let match = attribute.exec(attributes); match !== null; match = attribute.exec(attributes)) {
    const [, name = "", double, single] = match;
    yield [name, double ?? single ?? ""];
  }
}

function tagOf(tag: string): { readonly name: string; readonly attributes: string } {
  const space = tag.search(/\s/);
  const name = space === -1 ? tag : tag.slice(0, space);
  if (name === "") throw damaged("it has a < that begins nothing");
  return { name, attributes: space === -1 ? "" : tag.slice(space) };
}

function prefixOf(attributes: string, namespaces: ReadonlySet<string>): string {
  for (const [name, value] of attributesOf(attributes)) {
    if ((name === "xmlns" || name.startsWith("xmlns:")) && namespaces.has(value)) return name.slice("xmlns:".length);
  }
  throw refused("it is not a text document");
}

function nameIn(prefix: string | undefined, name: string): string {
  const colon = name.indexOf(":");
  if (name.slice(0, Math.max(0, colon)) === prefix) return name.slice(colon + 1);
  return colon === -1 ? `:${name}` : name;
}

/** A > in quotes belongs to a value. */
function tagEnd(text: string, from: number): number {
  let quote = "";
  for (let at = from; at < text.length; at += 1) {
    const char = text[at] ?? "";
    if (quote !== "") quote = char === quote ? "" : quote;
    else if (char === ">") return at + 1;
    else if (char === '"' || char === "'") quote = char;
    else if (char === "<") break;
  }
  throw damaged("it has a < that begins nothing");
}

function after(text: string, mark: string, from: number): number {
  const found = text.indexOf(mark, from);
  if (found === -1) throw damaged("it ends too early");
  return found + mark.length;
}

const ENTITIES: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

function decoded(text: string): string {
  return plain(text).replaceAll(/&([^;&]{0,8};)?/g, (whole: string, named: string | undefined) => {
    const name = named?.slice(0, -1) ?? "";
    const value = name.startsWith("#") ? character(name) : Object.hasOwn(ENTITIES, name) ? ENTITIES[name] : undefined;
    if (value === undefined) throw refused(`it has an entity that is not read: ${JSON.stringify(whole)}`);
    return value;
  });
}

function character(name: string): string | undefined {
  const [, hex, decimal] = /^#(?:x([0-9a-f]{1,6})|(\d{1,7}))$/i.exec(name) ?? [];
  const code = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16);
  if (!(code <= 0x10ffff) || (code >= 0xd800 && code <= 0xdfff)) return undefined;
  return plain(String.fromCodePoint(code));
}

/** XML has no control characters but tab and line ends. */
// oxlint-disable-next-line no-control-regex
const CONTROL = /[\0-\x08\x0b\x0c\x0e-\x1f]/;

function plain(text: string): string {
  if (CONTROL.test(text)) throw damaged("there are control characters in its text");
  return text;
}

function refused(what: string): HeddleError {
  return new HeddleError("task.invalid", `${what}; open it, and save it again as .docx`);
}

function damaged(what: string): HeddleError {
  return refused(`its text is damaged: ${what}`);
}
