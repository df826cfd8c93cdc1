/**
 * Tests run against the real thing, all of them, always: no module mocks, no spies, nothing switched off or singled out.
 * A test that cannot run on a host uses `test.runIf(condition)` with the reason in its name.
 * Usage: node scripts/test-habits.ts [root]
 */
import { Visitor, type Expression } from "oxc-parser";
import { runCheck, type CheckResult, type Finding } from "./finding.ts";
import { isTestFile, parseSource, sourceFiles, type Source } from "./source-files.ts";

const RUNNERS = new Set(["test", "it", "describe", "suite", "bench"]);
const SWITCHES = new Set(["only", "skip", "todo", "fails"]);
const MOCKS = new Set(["mock", "doMock", "unmock", "doUnmock", "hoisted", "importMock", "mockObject", "spyOn"]);

export function checkTestHabits(root: string): CheckResult {
  const files = sourceFiles(root).filter(isTestFile);
  return { examined: files.length, findings: files.flatMap((path) => habitsOf(parseSource(root, path))) };
}

function habitsOf(source: Source): Finding[] {
  const findings: Finding[] = [];
  const add = (offset: number, text: string): void => {
    findings.push({ at: `${source.path}:${source.lineAt(offset)}`, text });
  };
  new Visitor({
    MemberExpression: (node) => {
      const name = propertyName(node.property);
      const root = rootName(node.object);
      if (name === undefined || root === undefined) return;
      if (SWITCHES.has(name) && RUNNERS.has(root)) add(node.start, `${root}.${name}: every test runs`);
      if (MOCKS.has(name) && root === "vi") add(node.start, `vi.${name}: test against the real thing`);
    },
    CallExpression: (node) => {
      const root = rootName(node.callee);
      if (root === undefined || !RUNNERS.has(root)) return;
      for (const argument of node.arguments) {
        if (argument.type !== "ObjectExpression") continue;
        for (const property of argument.properties) {
          const name = property.type === "Property" ? propertyName(property.key) : undefined;
          if (name !== undefined && SWITCHES.has(name)) add(property.start, `{ ${name} }: every test runs`);
        }
      }
    },
  }).visit(source.program);
  return findings;
}

/** `test` of `test.each([1])("x").only`. */
function rootName(node: Expression): string | undefined {
  if (node.type === "Identifier") return node.name;
  if (node.type === "CallExpression") return rootName(node.callee);
  if (node.type === "TaggedTemplateExpression") return rootName(node.tag);
  return node.type === "MemberExpression" ? rootName(node.object) : undefined;
}

function propertyName(node: { readonly type: string }): string | undefined {
  if ("name" in node && typeof node.name === "string") return node.name;
  return "value" in node && typeof node.value === "string" ? node.value : undefined;
}

if (import.meta.main) runCheck(checkTestHabits);
