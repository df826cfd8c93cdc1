/** Every import of a file: static, dynamic, re-export, type-only, `import("x").T`, `require`, `import.meta.resolve`. */
import { Visitor, type Argument, type Expression } from "oxc-parser";
import { literalText, type Source } from "./source-files.ts";

export interface Import {
  readonly line: number;
  /** Absent when it is computed at run time. */
  readonly specifier: string | undefined;
}

export function importsOf(source: Source): Import[] {
  const found: Import[] = [];
  const add = (node: Expression): void => {
    found.push({ line: source.lineAt(node.start), specifier: literalText(node) });
  };
  new Visitor({
    ImportDeclaration: (node) => add(node.source),
    ExportAllDeclaration: (node) => add(node.source),
    ExportNamedDeclaration: (node) => {
      if (node.source !== null) add(node.source);
    },
    ImportExpression: (node) => add(node.source),
    TSImportType: (node) => add(node.source),
    TSExternalModuleReference: (node) => add(node.expression),
    CallExpression: (node) => {
      const [argument] = node.arguments;
      if (argument !== undefined && isLoader(node.callee) && isExpression(argument)) add(argument);
    },
  }).visit(source.program);
  return found;
}

function isLoader(callee: Expression): boolean {
  if (callee.type === "Identifier") return callee.name === "require";
  if (callee.type !== "MemberExpression" || callee.computed) return false;
  const { object, property } = callee;
  if (property.name !== "resolve") return false;
  return object.type === "MetaProperty" || (object.type === "Identifier" && object.name === "require");
}

function isExpression(argument: Argument): argument is Exclude<Argument, { type: "SpreadElement" }> {
  return argument.type !== "SpreadElement";
}
