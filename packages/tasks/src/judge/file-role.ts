/**
 * What a file is, by its name. It is said to people, and it keeps new files that look like judges out of what a verdict may
 * rest on by itself. It lets nothing through: what has an unknown name is no source.
 */
import { visiblePath } from "@heddle/protocol";
import type { FileRole } from "@heddle/protocol/tasks";

const SOURCE =
  /\.(js|cjs|mjs|jsx|ts|cts|mts|tsx|vue|svelte|py|rb|go|rs|java|kt|scala|php|c|cc|cpp|cxx|h|hh|hpp|cs|fs|swift|m|ex|exs|erl|clj|hs|ml|sh|bash|lua|dart|jl|r|sql|css|scss|less|html|md|rst|txt|adoc)$/i;

const RULES: readonly (readonly [FileRole, RegExp])[] = [
  ["repository", /(^|\/)\.(git|hg|svn)(\/|$)/i],
  ["cache", /(^|\/)(__pycache__|\.[a-z]*_?cache|\.nyc_output|\.vite|\.turbo|coverage)(\/|$)|\.(pyc|pyo|tsbuildinfo)$/i],
  ["dependency", /(^|\/)(node_modules|\.?venv|site-packages|vendor|\.cargo|\.yarn|\.pnp\.[^/]+)(\/|$)/i],
  ["dependency", /(^|\/)([^/]*[-.]lock(\.[a-z]+)?|[^/]*\.lockb?|go\.sum|pnpm-lock\.yaml|npm-shrinkwrap\.json)$/i],
  ["test", /(^|\/)(tests?|specs?|__tests__|__mocks__|__snapshots__|testing|testdata|fixtures?|e2e|golden)(\/|$)/i],
  ["test", /([._-](test|tests|spec)|(^|[/._-])(snap|golden|expected)|(Test|Tests|Spec))\.[^/]+$|\.snap$/],
  ["test", /(^|\/)(test_[^/]*|(test|spec)[_-]?helpers?\.[^/]+)$/],
  [
    "build",
    /(^|\/)((gnu)?makefile|\.?justfile|taskfile\.ya?ml|rakefile|gemfile|dockerfile|procfile|vagrantfile|jenkinsfile|cmakelists\.txt|package\.json|cargo\.toml|build\.rs|go\.(mod|work)|setup\.(py|cfg)|pyproject\.toml|requirements[^/]*\.txt|(nox|fab|dodo|pavement)[^/]*\.py|wscript|sconstruct|meson\.build|build(\.gradle)?(\.kts)?|pom\.xml|build\.xml|workspace|[^/]*\.(mk|cmake|bazel|bzl|gradle|csproj|fsproj|sln|nix|gyp|gemspec))$/i,
  ],
  ["configuration", /(^|\/)\.[^/]+/],
  ["configuration", /(^|\/)(conftest|sitecustomize|usercustomize)\.py$|\.pth$/i],
  [
    "configuration",
    /[._-](config|conf|rc|setup)\.[^/.]+$|(^|\/)(config|conf|settings|setup|bootstrap|preload)\.[^/.]+$/i,
  ],
  ["configuration", /\.(json5?|jsonc|ya?ml|toml|ini|cfg|conf|properties|env|xml|plist)$/i],
  ["source", SOURCE],
];

/** Whatever folder it is in. */
export function hasSourceEnding(path: string): boolean {
  return SOURCE.test(path);
}

/** Source to be read by people, or data: no program comes to a file by what it says. */
export function isProse(path: string): boolean {
  return /\.(md|rst|txt|adoc)$/i.test(path);
}

/** `path`: relative to the workspace, as text. */
export function roleOf(path: string): FileRole {
  return RULES.find(([, pattern]) => pattern.test(path))?.[0] ?? "other";
}

const TEXTS: Readonly<Record<FileRole, string>> = {
  source: " source",
  test: " test",
  configuration: " configuration",
  build: " build file",
  dependency: " dependency",
  cache: " cache",
  repository: ", git's own",
  other: ", not source code",
};

/** `src/a.js (changed source)`. */
export function described({
  path,
  how,
}: {
  readonly path: string;
  readonly how: "added" | "changed" | "removed";
}): string {
  return `${visiblePath(path)} (${how === "added" ? "new" : how}${TEXTS[roleOf(path)]})`;
}
