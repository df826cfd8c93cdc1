/**
 * Declaration files of the libraries in the published package. The compiler's own declarations are kept, with their
 * comments; types that come from a private package, most of them inferred from zod schemas, are written out in full by
 * the type checker. So a user needs neither zod nor a build condition.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { API, SymbolFlags, type Checker, type Program, type Symbol as TypeSymbol } from "typescript/unstable/sync";

export interface Library {
  /** The folder below `out` that its declarations are written to. */
  readonly name: string;
  /** From the root: its index; what it imports relatively lies beside it. */
  readonly entry: string;
}

/** Types that are written out under their own name wherever they occur; shorter ones are as readable in place. */
const MIN_NAMED_CHARS = 80;
const SHARED = "protocol";
const NO_TRUNCATION = 1;
const QUALIFIED = 64;
const OUTERMOST_IN_FULL = 8_388_608;
const PRINTING = NO_TRUNCATION | QUALIFIED | OUTERMOST_IN_FULL;
/** Named where it is declared; a library without it in its `lib` would not know `AsyncDisposable`. */
const HEAD = '/// <reference lib="esnext.disposable" />\n';

export function writeTypes(root: string, out: string, libraries: readonly Library[]): void {
  const scratch = mkdtempSync(path.join(tmpdir(), "heddle-types-"));
  try {
    const config = path.join(scratch, "tsconfig.json");
    const emitted = path.join(scratch, "emitted");
    writeFileSync(config, JSON.stringify(configFor(root, emitted, libraries)));
    run(path.join(root, "node_modules", ".bin", "tsc"), ["-p", config]);
    using printer = openPrinter(root, config);
    for (const library of libraries) writeLibrary({ root, emitted, out, printer }, library);
    const files = libraries.map(({ name }) => path.join(out, name, `${SHARED}.d.ts`));
    // Formatted outside the folders that the formatter passes over.
    for (const file of files) {
      const copy = path.join(scratch, "shared.d.ts");
      writeFileSync(copy, readFileSync(file));
      run(path.join(root, "node_modules", ".bin", "oxfmt"), ["--config", path.join(root, ".oxfmtrc.json"), copy]);
      writeFileSync(file, readFileSync(copy));
    }
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

function configFor(root: string, emitted: string, libraries: readonly Library[]): object {
  return {
    extends: path.join(root, "tsconfig.json"),
    compilerOptions: {
      noEmit: false,
      // Types are checked by a step of their own.
      noCheck: true,
      declaration: true,
      emitDeclarationOnly: true,
      rootDir: root,
      outDir: emitted,
      typeRoots: [path.join(root, "node_modules", "@types")],
    },
    // Only what is named here is printed by the compiler; what it reaches through node_modules is not.
    include: [path.join(root, "packages", "protocol", "src")],
    exclude: ["**/*.test.ts"],
    files: libraries.map(({ entry }) => path.join(root, entry)),
  };
}

function run(program: string, args: readonly string[]): void {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`${path.basename(program)} failed\n${stdout}${stderr}`);
}

interface Making {
  readonly root: string;
  readonly emitted: string;
  readonly out: string;
  readonly printer: Printer;
}

function writeLibrary({ root, emitted, out, printer }: Making, { name, entry }: Library): void {
  const folder = path.dirname(entry);
  const shared = new SharedTypes(printer);
  /** Files of private packages that declare a value, such as an error class; by their name in the output. */
  const copies = new Map<string, string>();
  const waiting = new Map([[path.basename(entry, ".ts"), entry]]);
  for (const [target, file] of waiting) {
    const text = readFileSync(path.join(emitted, file.replace(/\.ts$/, ".d.ts")), "utf8");
    const isEntry = file === entry;
    const rewritten = rewriteImports(text, (specifier, names) => {
      if (specifier.startsWith(".")) {
        const found = path.posix.join(path.posix.dirname(file), specifier);
        if (!found.startsWith(`${folder}/`) && !copies.has(target))
          throw new Error(`${file} imports ${specifier}, which is outside ${folder}`);
        const next = path.posix
          .relative(copies.has(target) ? path.posix.dirname(file) : folder, found)
          .replace(/\.ts$/, "");
        waiting.set(next, found);
        return [{ from: `./${next}.js`, names }];
      }
      if (!specifier.startsWith("@heddle/")) throw new Error(`${file} needs ${specifier}, which users do not have`);
      return printer.whereDeclared(specifier, names).map(({ file: declared, names: own }) => {
        if (declared === undefined) {
          shared.add(specifier, own);
          return { from: `./${SHARED}.js`, names: own };
        }
        const copy = path.basename(declared, ".ts");
        copies.set(copy, declared);
        waiting.set(copy, path.relative(root, declared));
        return { from: `./${copy}.js`, names: own };
      });
    });
    write(path.join(out, name, `${target}.d.ts`), `${isEntry ? HEAD : ""}${rewritten}`);
  }
  write(path.join(out, name, `${SHARED}.d.ts`), shared.text());
}

function write(file: string, text: string): void {
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, text);
}

/** `A` or `A as B`. */
type Name = string;
type Rewrite = (specifier: string, names: readonly Name[]) => readonly { from: string; names: readonly Name[] }[];

const STATEMENT = /^(import|export)( type)? (?:\{([^}]*)\}|\*) from "([^"]+)";$/gm;

/** The compiler prints imports and exports in one form only; anything else that names a module is refused. */
function rewriteImports(text: string, rewrite: Rewrite): string {
  const rewritten = text.replaceAll(
    STATEMENT,
    (_all, word: string, isType: string | undefined, list: string | undefined, specifier: string) => {
      const names = (list ?? "")
        .split(",")
        .map((name) => name.trim())
        .filter((name) => name !== "");
      return rewrite(specifier, names)
        .map(
          (target) =>
            `${word}${isType ?? ""} ${list === undefined ? "*" : `{ ${target.names.join(", ")} }`} from "${target.from}";`,
        )
        .join("\n");
    },
  );
  const left = /\bimport\("[^"]*"\)|from "(?!\.\/[\w-]+\.js")[^"]*"/.exec(rewritten);
  if (left !== null) throw new Error(`${left[0]} cannot be packed; name the type in a file of the library`);
  return rewritten;
}

interface Printer extends Disposable {
  /** The file that declares each name when it is a value; `undefined` when it is a type alone. */
  whereDeclared(
    specifier: string,
    names: readonly Name[],
  ): readonly { file: string | undefined; names: readonly Name[] }[];
  exported(specifier: string, name: string): TypeSymbol;
  /** Every type that a module exports. */
  types(specifier: string): readonly TypeSymbol[];
  print(symbol: TypeSymbol): string;
  named(file: string, name: string): TypeSymbol;
}

function openPrinter(root: string, config: string): Printer {
  const api = new API({ cwd: root });
  const [project] = api.updateSnapshot({ openProjects: [config] }).getProjects();
  if (project === undefined) throw new Error(`${config} cannot be opened`);
  const { checker, program } = project;
  const exportsOf = (specifier: string): readonly TypeSymbol[] =>
    moduleExports(program, checker, entryOf(root, specifier));
  const find = (all: readonly TypeSymbol[], name: string): TypeSymbol => {
    const found = all.find((symbol) => symbol.name === name);
    if (found === undefined) throw new Error(`nothing exports ${name}`);
    return found;
  };
  return {
    whereDeclared(specifier, names) {
      const groups = new Map<string | undefined, Name[]>();
      for (const name of names) {
        const symbol = find(exportsOf(specifier), name.replace(/^type /, "").split(" as ")[0] ?? name);
        const isValue = (symbol.flags & (SymbolFlags.Class | SymbolFlags.Function)) !== 0;
        const file = isValue ? symbol.declarations[0]?.path : undefined;
        groups.set(file, [...(groups.get(file) ?? []), name]);
      }
      return [...groups].map(([file, own]) => ({ file, names: own }));
    },
    exported: (specifier, name) => find(exportsOf(specifier), name),
    types: (specifier) => exportsOf(specifier).filter(({ flags }) => (flags & SymbolFlags.TypeAlias) !== 0),
    print: (symbol) => checker.typeToString(checker.getDeclaredTypeOfSymbol(symbol), undefined, PRINTING),
    named: (file, name) => find(moduleExports(program, checker, sourceOf(program, file)), name),
    [Symbol.dispose]: () => api.close(),
  };
}

/** The checker names files without their ending. */
function sourceOf(program: Program, file: string): string {
  const endings = [".ts", ".d.ts", ".d.cts", ".d.mts"].map((ending) => `${file}${ending}`);
  return endings.find((name) => program.getSourceFile(name) !== undefined) ?? file;
}

function moduleExports(program: Program, checker: Checker, file: string): readonly TypeSymbol[] {
  const source = program.getSourceFile(file);
  const symbol = source === undefined ? undefined : checker.getSymbolAtLocation(source);
  if (symbol === undefined) throw new Error(`${file} is not part of a library`);
  return checker
    .getExportsOfModule(symbol)
    .map((found) => ((found.flags & SymbolFlags.Alias) === 0 ? found : checker.getAliasedSymbol(found)));
}

/** The source file behind `@heddle/protocol/http`, by the exports of its package. */
function entryOf(root: string, specifier: string): string {
  const [, folder = "", below = ""] = /^@heddle\/([\w-]+)(\/.*)?$/.exec(specifier) ?? [];
  const manifest = JSON.parse(readFileSync(path.join(root, "packages", folder, "package.json"), "utf8")) as {
    readonly exports: Readonly<Record<string, Readonly<Record<string, string>>>>;
  };
  return path.join(root, "packages", folder, manifest.exports[`.${below}`]?.["heddle-source"] ?? "");
}

/** Types of private packages, each under one name, the large ones by name wherever they occur in another. */
class SharedTypes {
  readonly #printer: Printer;
  readonly #wanted = new Map<string, TypeSymbol>();
  readonly #specifiers = new Set<string>();

  constructor(printer: Printer) {
    this.#printer = printer;
  }

  add(specifier: string, names: readonly Name[]): void {
    this.#specifiers.add(specifier);
    for (const name of names) {
      const own = name.replace(/^type /, "").split(" as ")[0] ?? name;
      const symbol = this.#printer.exported(specifier, own);
      if (symbol.name !== own) throw new Error(`${own} of ${specifier} is declared as ${symbol.name}`);
      this.#keep(this.#wanted, symbol);
    }
  }

  text(): string {
    const all = new Map(this.#wanted);
    const texts = new Map<string, string>();
    const candidates = [...this.#specifiers].flatMap((specifier) => this.#printer.types(specifier));
    // Only a type that stands for itself can replace a part of another.
    for (const symbol of candidates)
      if (!all.has(symbol.name) && isNamed(this.#printer.print(symbol))) all.set(symbol.name, symbol);
    for (const [name, symbol] of all) texts.set(name, this.#print(symbol, all, texts));
    const byLength = [...texts].filter(([, text]) => isNamed(text)).toSorted(([, a], [, b]) => b.length - a.length);
    const used = new Map<string, string>();
    const waiting = new Set(this.#wanted.keys());
    for (const name of waiting) {
      let text = texts.get(name) ?? "";
      for (const [other, whole] of byLength)
        if (other !== name && whole.length < text.length) text = withName(text, whole, other);
      used.set(name, text);
      for (const other of all.keys()) if (new RegExp(`(?<![\\w".])${other}(?![\\w"?:])`).test(text)) waiting.add(other);
    }
    return [...used]
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, text]) => `export type ${name} = ${text};\n`)
      .join("");
  }

  /** In one line. What the checker cannot write in place, because it contains itself, it names with its file. */
  #print(symbol: TypeSymbol, all: Map<string, TypeSymbol>, texts: Map<string, string>): string {
    const text = this.#printer.print(symbol);
    return text.replaceAll(/import\("([^"]+)"\)\.(\w+)/g, (_found, file: string, name: string) => {
      if (name === symbol.name && text.startsWith("import("))
        throw new Error(`${name} is an interface; export it as a type`);
      const other = this.#printer.named(file, name);
      this.#keep(all, other);
      if (!texts.has(name)) {
        texts.set(name, "");
        texts.set(name, this.#print(other, all, texts));
      }
      return name;
    });
  }

  #keep(among: Map<string, TypeSymbol>, symbol: TypeSymbol): void {
    const known = among.get(symbol.name);
    if (known !== undefined && known.id !== symbol.id) throw new Error(`two types are called ${symbol.name}`);
    among.set(symbol.name, symbol);
  }
}

function isNamed(text: string): boolean {
  const isWhole = text.startsWith("{") && text.endsWith("}");
  return isWhole && text.length >= MIN_NAMED_CHARS && !text.includes("import(");
}

/** Only where it stands as a whole: a union before `[]` or beside `&` would become another type. */
function withName(text: string, whole: string, name: string): string {
  const isUnion = hasBarOutside(whole);
  return text.split(whole).reduce((before, after) => {
    const isApart = !before.endsWith("& ") && !after.startsWith("[") && !after.startsWith(" &");
    return `${before}${isApart || !isUnion ? name : whole}${after}`;
  });
}

/** A bar that stands in no bracket of any kind. */
function hasBarOutside(text: string): boolean {
  let depth = 0;
  for (const sign of text) {
    if ("{([<".includes(sign)) depth += 1;
    else if ("})]>".includes(sign)) depth -= 1;
    else if (sign === "|" && depth === 0) return true;
  }
  return false;
}
