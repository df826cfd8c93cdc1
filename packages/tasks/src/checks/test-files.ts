/** Which files are tests, by the names that runners find them by, and what runners read their ways from. */
const SOURCE =
  /\.(js|cjs|mjs|jsx|ts|cts|mts|tsx|py|rb|go|rs|java|kt|kts|scala|php|c|cc|cpp|cs|swift|ex|exs|clj|sh|bats|lua|dart)$/;
const FOLDER = /(^|\/)(test|tests|spec|__tests__)\//;
const SNAPSHOT = /(^|\/)__snapshots__\//;
const STEM = /([._-](test|spec)|(Test|Tests|Spec))\.[^./]+$/;
const PYTHON = /(^|\/)test_[^/]*\.py$/;
const CONFIGURATION =
  /(^|\/)(conftest\.py|pytest\.ini|tox\.ini|phpunit\.xml|\.mocharc\.[^/]+|(vitest|jest|ava|karma|playwright|cypress)\.config\.[^/]+)$/;

export function isTestFile(path: string): boolean {
  if (SNAPSHOT.test(path) || CONFIGURATION.test(path)) return true;
  return SOURCE.test(path) && (FOLDER.test(path) || STEM.test(path) || PYTHON.test(path));
}
