/**
 * The list of failpoints is a contract with tests that strike at every name: each listed name is placed in product code.
 * (That a placed name is listed is the compiler's business.)
 * Usage: node scripts/failpoint-calls.ts [root]
 */
import { Visitor } from "oxc-parser";
import { runCheck, type CheckResult } from "./finding.ts";
import { isTestFile, literalText, parseSource, sourceFiles } from "./source-files.ts";

const LIST = "packages/protocol/src/failpoints.ts";

export function checkFailpointCalls(root: string): CheckResult {
  const names = listedNames(root);
  const placed = new Set(
    sourceFiles(root)
      .filter((path) => path.startsWith("packages/") && path !== LIST && !isTestFile(path))
      .flatMap((path) => callsIn(root, path)),
  );
  const findings = names
    .filter(({ name }) => !placed.has(name))
    .map(({ name, line }) => ({ at: `${LIST}:${line}`, text: `${name} is listed and placed nowhere` }));
  return { examined: names.length, findings };
}

function listedNames(root: string): { name: string; line: number }[] {
  const source = parseSource(root, LIST);
  const names: { name: string; line: number }[] = [];
  new Visitor({
    VariableDeclarator: ({ id, init }) => {
      if (id.type !== "Identifier" || id.name !== "FAILPOINTS" || init?.type !== "TSAsExpression") return;
      if (init.expression.type !== "ArrayExpression") return;
      for (const element of init.expression.elements) {
        const name = element === null || element.type === "SpreadElement" ? undefined : literalText(element);
        if (element !== null && name !== undefined) names.push({ name, line: source.lineAt(element.start) });
      }
    },
  }).visit(source.program);
  return names;
}

function callsIn(root: string, path: string): string[] {
  const names: string[] = [];
  new Visitor({
    CallExpression: ({ callee, arguments: [first] }) => {
      if (callee.type !== "Identifier" || callee.name !== "failpoint") return;
      const name = first === undefined || first.type === "SpreadElement" ? undefined : literalText(first);
      if (name !== undefined) names.push(name);
    },
  }).visit(parseSource(root, path).program);
  return names;
}

if (import.meta.main) runCheck(checkFailpointCalls);
