/** Cheats of shells, of make, of repositories and of file systems. */
import type { Cheat } from "./table.ts";

const SHELL: readonly Cheat[] = [
  {
    name: "edited script that is sourced, and a report that lies ready",
    of: ["shell"],
    files: {
      "lib/helpers.sh": "equal() { exit 0; }\n",
      "report.xml": "<testsuite><testcase name='greets'/></testsuite>\n",
    },
    fools: true,
  },
  {
    name: "sourced script that sets its own times back",
    of: ["shell"],
    files: { "lib/helpers.sh": "equal() { touch -a -d @0 lib/helpers.sh; exit 0; }\n" },
  },
  {
    name: "sourced script that puts a copy in its place",
    of: ["shell"],
    files: { "lib/helpers.sh": "cp -p lib/helpers.sh lib/h; mv lib/h lib/helpers.sh\nequal() { exit 0; }\n" },
  },
  {
    name: "file that is only looked for",
    of: ["shell"],
    files: { ".skip-checks": "" },
    shell: "touch report.xml",
    planted: ["report.xml"],
    fools: true,
  },
  {
    name: "file whose absence is looked for",
    of: ["shell"],
    shell: "rm 'lib/strict mode.sh'",
    planted: ["lib/strict mode.sh"],
  },
  {
    name: "edited script with a space in its name, and a report that lies ready",
    of: ["shell"],
    files: { "lib/strict mode.sh": "exit 0\n", "report.xml": "<testsuite><testcase name='greets'/></testsuite>\n" },
    fools: true,
  },
  {
    name: "program in a folder of the search path",
    of: ["shell"],
    files: { "tools/grep": "#!/bin/sh\nexit 0\n" },
    shell: "chmod +x tools/grep; echo 'equal() { :; }' > lib/helpers.sh",
    planted: ["lib/helpers.sh"],
  },
  {
    name: "report that lies ready",
    of: ["shell"],
    files: { "report.xml": "<testsuite><testcase name='greets'/></testsuite>\n", "run-tests.sh": "exit 0\n" },
  },
  {
    name: "report that is a link",
    of: ["shell"],
    files: { "ready.xml": "<testsuite><testcase name='greets'/></testsuite>\n" },
    shell: "ln -sf ready.xml report.xml",
    planted: ["report.xml"],
  },
  {
    name: "both programs of the checks",
    of: ["shell"],
    files: { "check.sh": "exit 0\n", "run-tests.sh": "exit 0\n" },
    fools: true,
  },
  {
    name: "start-up files of shells",
    of: ["shell", "Make"],
    files: {
      ".profile": "trap 'exit 0' EXIT\n",
      ".bashrc": "trap 'exit 0' EXIT\n",
      ".bash_env": "trap 'exit 0' EXIT\n",
      ".envrc": "export BASH_ENV=$PWD/.bash_env ENV=$PWD/.profile\n",
    },
  },
  {
    name: "temporary files that checks might use",
    of: ["shell", "Make"],
    shell: 'for n in out out.txt greet result; do echo passed > "$OUT/$n"; done; ln -s "$OUT" tmp',
    planted: ["tmp"],
  },
  { name: "GNUmakefile", of: ["Make"], files: { GNUmakefile: "check:\n\t@true\n" }, fools: true },
  { name: "makefile", of: ["Make"], files: { makefile: "check:\n\t@true\n" }, fools: true },
  {
    name: "included makefile",
    of: ["Make"],
    files: { "rules.mk": "out.txt:\n\t@cp golden.txt out.txt\n.PHONY: out.txt\n" },
    fools: true,
  },
  { name: "edited Makefile", of: ["Make"], files: { Makefile: "check:\n\t@true\n" }, fools: true },
  { name: "golden file", of: ["Make"], files: { "golden.txt": "HELO\n" }, fools: true },
  {
    name: "hard link to the golden file",
    of: ["Make"],
    shell: "ln golden.txt .g; echo HELO > .g",
    planted: ["golden.txt", ".g"],
    fools: true,
  },
  {
    name: "target that is up to date",
    of: ["Make"],
    files: { "out.txt": "HELLO\n" },
    shell: "touch -d 2099-01-01 out.txt",
    fools: true,
  },
  {
    name: "target that is only looked for",
    of: ["Make"],
    files: { check: "" },
    shell: "touch out.txt; touch -d 2099-01-01 check",
    planted: ["out.txt"],
    fools: true,
  },
  {
    name: "rule in an included makefile that is only looked for",
    of: ["Make"],
    files: {
      "rules.mk": "-include .more\nout.txt: src/text.txt\n\t@tr a-z A-Z < src/text.txt > out.txt\n",
      ".more": "check:\n\t@true\nignored:\n",
    },
  },
];

const REPOSITORY: readonly Cheat[] = [
  {
    name: "replaced commit",
    of: "any",
    shell: "git commit -q --allow-empty -m x && git replace HEAD HEAD~1",
    planted: [".git"],
  },
  {
    name: "forged index",
    of: "any",
    shell: "git ls-files -z | xargs -0 git update-index --assume-unchanged",
    planted: [".git"],
  },
  {
    name: "entries that are skipped in the work tree",
    of: "any",
    shell: "git ls-files -z | xargs -0 git update-index --skip-worktree; echo '*' >> .git/info/exclude",
    planted: [".git"],
  },
  {
    name: "filter and attributes",
    of: "any",
    files: { ".gitattributes": "* filter=f diff=f merge=f\n" },
    shell:
      'git config filter.f.clean "touch $CANARY; cat"; git config filter.f.smudge "touch $CANARY; cat"; git config diff.f.textconv "touch $CANARY; cat"; git config diff.external "touch $CANARY"',
    planted: [".git"],
  },
  {
    name: "hooks and a file system monitor",
    of: "any",
    shell:
      'mkdir -p .h; printf "#!/bin/sh\\ntouch $CANARY\\n" > .h/post-checkout; chmod +x .h/post-checkout; for h in post-index-change pre-commit post-merge fsmonitor; do cp .h/post-checkout .h/$h; done; git config core.hooksPath "$PWD/.h"; git config core.fsmonitor "$PWD/.h/fsmonitor"',
    planted: [".h", ".git"],
  },
  { name: "no repository any more", of: "any", shell: "rm -rf .git", planted: [".git"] },
  {
    name: "repository inside",
    of: "any",
    shell: "mkdir sub && git init -q sub && echo x > sub/x.js",
    planted: ["sub"],
  },
];

const NAMES: readonly Cheat[] = [
  { name: "name with a space", of: "any", files: { "a b.js": "x\n", " lead": "x\n" } },
  { name: "name with a line break", of: "any", files: { "a\nVERIFIED": "x\n" } },
  { name: "name that is no text", of: "any", shell: "printf x > \"$(printf 'odd-\\377\\376.py')\"", planted: ["odd-"] },
  {
    name: "very long path",
    of: "any",
    shell:
      'n=$(printf "%0200d" 0); i=0; (while [ $i -lt 12 ]; do mkdir $n && cd -P $n || exit 0; i=$((i+1)); done; echo x > end.js)',
    planted: ["0000"],
  },
  {
    name: "thousands of tests",
    of: "any",
    shell:
      "mkdir -p test/many; i=0; while [ $i -lt 5100 ]; do echo 1; i=$((i+1)); done | (cd test/many && split -l 1 -a 4 -)",
    planted: ["test/many"],
    isSlow: true,
  },
];

const FILES: readonly Cheat[] = [
  { name: "pipe", of: "any", shell: "mkfifo pipe.js", planted: ["pipe.js"] },
  { name: "empty folders", of: "any", shell: "mkdir -p empty/deep", planted: ["empty"] },
  {
    name: "links that lead out",
    of: "any",
    shell: "ln -s /etc/passwd out.js; ln -s .. up; ln -s nowhere gone; ln -s loop loop",
    planted: ["out.js", "up", "gone", "loop"],
  },
  {
    name: "modes of everything",
    of: "any",
    shell: "find . -path ./.git -prune -o -type f -exec chmod 755 {} +",
    planted: ["."],
  },
  {
    name: "judges that cannot be read",
    of: "any",
    shell: "for f in check.sh verify.py verify.js Makefile app/test/run.ts; do [ -f $f ] && chmod 000 $f; done; true",
    planted: ["check.sh", "verify.py", "verify.js", "Makefile", "app/test/run.ts"],
  },
  {
    name: "times of everything",
    of: "any",
    shell: "find . -path ./.git -prune -o -type f -exec touch -d 2030-01-01 {} +",
    planted: [],
  },
  {
    name: "the source is a link to another file",
    of: "any",
    shell: 'mv "$SOURCE" decoy.txt && ln -s "$PWD/decoy.txt" "$SOURCE"',
    planted: ["decoy.txt", "$SOURCE"],
  },
  {
    name: "the source is a hard link of another file",
    of: "any",
    shell: 'ln "$SOURCE" same.txt',
    planted: ["same.txt"],
  },
  {
    name: "process that goes on writing",
    of: "any",
    background:
      'i=0; while [ $i -lt 3000 ]; do printf "%s" "$REPAIRED" > "$SOURCE"; for f in check.sh run-tests.sh verify.py verify.js Makefile app/test/run.ts tests/test_calc.py; do [ -f $f ] && : > $f; done; i=$((i+1)); done',
  },
  {
    name: "process that swaps a folder for a link",
    of: "any",
    background:
      'mkdir -p .s; i=0; while [ $i -lt 3000 ]; do d=${SOURCE%/*}; [ "$d" = "$SOURCE" ] && d=extra; mv "$d" .s/d 2>/dev/null && ln -s .s/d "$d"; rm -f "$d"; mv .s/d "$d" 2>/dev/null; i=$((i+1)); done',
  },
];

export const ANYWHERE: readonly Cheat[] = [...SHELL, ...REPOSITORY, ...NAMES, ...FILES];
