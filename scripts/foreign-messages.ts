/**
 * What Node or a library says must not reach a user: product code takes the text of an error that it caught from `reasonOf`,
 * unless it has asked whether the error is one of Heddle's own, and what a schema says from `PLAIN`.
 * Usage: node scripts/foreign-messages.ts [root]
 */
import type { Node } from "oxc-parser";
import { runCheck, type CheckResult, type Finding } from "./finding.ts";
import { isTestFile, parseSource, sourceFiles, type Source } from "./source-files.ts";

/** Where the text of foreign errors is made. */
const MAKERS = /^packages\/protocol\/src\/(?:errors|text\/foreign-reasons)\.ts$/;
const USUAL_NAMES = new Set(["error", "cause", "err", "reason"]);
/** Looks into a text and shows nothing of it. */
const LOOKS = new Set(["includes", "startsWith"]);

interface Caught {
  readonly uses: number[];
  /** Asked whether it is an error of Heddle, or of a class of Heddle. */
  isOwn: boolean;
}

type Scope = ReadonlyMap<string, Caught>;

export function checkForeignMessages(root: string): CheckResult {
  const files = sourceFiles(root).filter(
    (path) => /^packages\/[^/]+\/src\//.test(path) && !MAKERS.test(path) && !isTestFile(path),
  );
  return { examined: files.length, findings: files.flatMap((path) => foreignIn(parseSource(root, path))) };
}

function foreignIn(source: Source): readonly Finding[] {
  const caught: Caught[] = [];
  const loose = new Set<string>();
  const schema: number[] = [];
  const own = ownNames(source);

  function visit(node: Node, scope: Scope): void {
    const inner = scopeOf(node, scope, caught);
    if (node.type === "MemberExpression" && LOOKS.has(nameOf(node.property))) return;
    inner.get(textOf(node))?.uses.push(node.start);
    const asked = askedOf(node, own);
    const binding = asked === undefined ? undefined : inner.get(asked);
    if (binding !== undefined) binding.isOwn = true;
    const parsed = looseParse(node);
    if (parsed !== undefined) loose.add(parsed);
    const shown = shownIssue(node);
    if (shown !== undefined && loose.has(shown)) schema.push(node.start);
    for (const child of childrenOf(node)) visit(child, inner);
  }
  visit(source.program, new Map());

  const foreign = caught.filter(({ isOwn }) => !isOwn).flatMap(({ uses }) => uses);
  const found = [
    ...foreign.map((start) => ({ start, text: "the text of a foreign error; use reasonOf(error)" })),
    ...schema.map((start) => ({ start, text: "zod's own text; parse with safeParse(value, PLAIN)" })),
  ];
  return found
    .toSorted((a, b) => a.start - b.start)
    .map(({ start, text }) => ({ at: `${source.path}:${source.lineAt(start)}`, text }));
}

function scopeOf(node: Node, scope: Scope, caught: Caught[]): Scope {
  const names: string[] = [];
  if (node.type === "CatchClause" && node.param?.type === "Identifier") names.push(node.param.name);
  if ("params" in node && Array.isArray(node.params)) {
    for (const param of node.params) {
      if (param.type !== "Identifier") continue;
      const annotation = param.typeAnnotation?.typeAnnotation;
      const isError = isErrorType(annotation);
      const mayBeAnything = annotation === null || annotation === undefined || annotation.type === "TSUnknownKeyword";
      if (isError || (mayBeAnything && USUAL_NAMES.has(param.name))) names.push(param.name);
    }
  }
  if (node.type === "Program" || node.type === "BlockStatement") {
    for (const statement of node.body) {
      if (statement.type !== "VariableDeclaration") continue;
      for (const { id } of statement.declarations)
        if (id.type === "Identifier" && isErrorType(id.typeAnnotation?.typeAnnotation)) names.push(id.name);
    }
  }
  if (names.length === 0) return scope;
  const inner = new Map(scope);
  for (const name of names) {
    const binding: Caught = { uses: [], isOwn: false };
    caught.push(binding);
    inner.set(name, binding);
  }
  return inner;
}

/** `Error`, also beside other types. */
function isErrorType(type: Node | null | undefined): boolean {
  if (type?.type === "TSUnionType") return type.types.some(isErrorType);
  return type?.type === "TSTypeReference" && nameOf(type.typeName) === "Error";
}

/** The name in `error.message`, `error.cause.message` and `String(error)`; a template takes no error by itself (lint). */
function textOf(node: Node): string {
  if (node.type === "MemberExpression" && nameOf(node.property) === "message") {
    const { object } = node;
    return nameOf(object.type === "MemberExpression" && nameOf(object.property) === "cause" ? object.object : object);
  }
  return node.type === "CallExpression" && nameOf(node.callee) === "String" ? nameOf(node.arguments[0]) : "";
}

function askedOf(node: Node, own: ReadonlySet<string>): string | undefined {
  if (node.type === "CallExpression" && nameOf(node.callee) === "isHeddleError") return nameOf(node.arguments[0]);
  const isOwn = node.type === "BinaryExpression" && node.operator === "instanceof" && own.has(nameOf(node.right));
  return isOwn ? nameOf(node.left) : undefined;
}

/** Names that a file declares, or imports from Heddle. */
function ownNames({ program }: Source): ReadonlySet<string> {
  const names = new Set<string>();
  for (const statement of program.body) {
    if (statement.type === "ImportDeclaration" && /^(?:\.|@heddle\/)/.test(statement.source.value))
      for (const { local } of statement.specifiers) names.add(local.name);
    const declared = "declaration" in statement ? statement.declaration : statement;
    if (declared?.type === "ClassDeclaration") names.add(nameOf(declared.id));
  }
  return names;
}

/** The name that holds what `safeParse(value)` found. */
function looseParse(node: Node): string | undefined {
  if (node.type !== "VariableDeclarator" || node.init?.type !== "CallExpression") return undefined;
  const { callee, arguments: given } = node.init;
  const isParse = callee.type === "MemberExpression" && nameOf(callee.property) === "safeParse";
  return isParse && given.length === 1 ? nameOf(node.id) : undefined;
}

/** The name in `reasonOf(parsed.error)`, `parsed.error.message` and `parsed.error.issues[0].message`. */
function shownIssue(node: Node): string | undefined {
  const isReason = node.type === "CallExpression" && nameOf(node.callee) === "reasonOf";
  const isMessage = node.type === "MemberExpression" && nameOf(node.property) === "message";
  let at: Node | undefined = isReason ? node.arguments[0] : isMessage ? node.object : undefined;
  while (at?.type === "MemberExpression" || at?.type === "ChainExpression") {
    if (at.type === "MemberExpression" && nameOf(at.property) === "error") return nameOf(at.object);
    at = at.type === "ChainExpression" ? at.expression : at.object;
  }
  return undefined;
}

function nameOf(node: Node | null | undefined): string {
  return node?.type === "Identifier" ? node.name : "";
}

function childrenOf(node: Node): readonly Node[] {
  return Object.values(node).flat().filter(isNode);
}

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && "type" in value && "start" in value;
}

if (import.meta.main) runCheck(checkForeignMessages);
