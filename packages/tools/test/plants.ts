/**
 * What a hostile agent does to a workspace, at random: lines for bash, in the workspace. `$P` is a program that leaves a mark
 * outside when the owner runs it, `$EVIL` is a configuration that makes git run it. Whatever a line cannot do, it does not.
 */

export type Dice = (sides: number) => number;

/** The same sequence for the same seed (mulberry32). */
export function diceOf(seed: number): Dice {
  let state = seed >>> 0;
  return (sides) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % sides;
  };
}

function pick<T>(dice: Dice, values: readonly [T, ...T[]]): T {
  return values[dice(values.length)] ?? values[0];
}

const FOLDERS = [
  ".",
  "src",
  "sub",
  "a/b",
  "a/b/c/d",
  "vendor/lib",
  ".git/x",
  ".git/objects/ab",
  ".git/objects/.git/modules/e",
  ".git/worktrees/x",
  ".git/worktrees/x/deep",
  ".git/modules/m",
  ".git/refs/heads",
  ".git/hooks.sample",
  "bare/refs/q",
  ".github",
  "$'odd\\xff\\xc3'",
  "$'new\\nline'",
  "-dash",
  "'trailing '",
  `${"long".repeat(60)}`,
] as const;
const NAMES = [
  ".vscode",
  ".VSCODE",
  ".claude",
  ".husky",
  ".idea",
  ".envrc",
  ".npmrc",
  ".mcp.json",
  "opencode.json",
  ".gitmodules",
  ".yarnrc.yml",
  ".github/workflows",
] as const;
const HOOKS = ["pre-commit", "post-checkout", "post-index-change", "reference-transaction", "post-commit"] as const;

const folder = (dice: Dice): string => {
  const chosen = pick(dice, FOLDERS);
  return dice(4) === 0 && chosen !== "." ? `${chosen}/n${dice(4)}` : chosen;
};

/** Makes a git folder by hand, so that nothing git refuses stands in the way. */
const gitFolder = (path: string): string =>
  `mkdir -p ${path}/objects ${path}/refs/heads; echo 'ref: refs/heads/main' > ${path}/HEAD`;

type Plant = (dice: Dice) => string;

const PLANTS: readonly [Plant, ...Plant[]] = [
  // Protected names, also below what looks like a git folder.
  (dice) => `d=${folder(dice)}/${pick(dice, NAMES)}; mkdir -p -- "$d" && cp $P "$d/tasks.json"`,
  (dice) =>
    `d=${folder(dice)}; mkdir -p -- "$d"; cp $P "$d"/${pick(dice, [".envrc", ".npmrc", ".profile", ".mcp.json"])}`,
  (dice) => {
    const at = folder(dice);
    return `cd -- ${at} 2>/dev/null || { mkdir -p -- ${at} && cd -- ${at}; }; ${gitFolder(".")}; mkdir -p deep/${pick(dice, NAMES)} deep/.git/hooks; cp $P deep/.git/hooks/${pick(dice, HOOKS)}`;
  },
  // Repositories that run something.
  (dice) => `d=${folder(dice)}/r${dice(3)}; git init -q -- "$d"; cat $EVIL >> "$d/.git/config"`,
  (dice) => `d=${folder(dice)}/r${dice(3)}; git init -q -- "$d"; cp $P "$d/.git/hooks/${pick(dice, HOOKS)}"`,
  (dice) =>
    `d=${folder(dice)}/r${dice(3)}; git init -q --bare -- "$d"; cat $EVIL >> "$d/config"; cp $P "$d/hooks/${pick(dice, HOOKS)}"`,
  (dice) =>
    `d=${folder(dice)}/r${dice(3)}; git init -q -- "$d"; git -C "$d" config extensions.worktreeConfig true; cat $EVIL > "$d/.git/config.worktree"`,
  (dice) =>
    `d=${folder(dice)}/r${dice(3)}; git init -q -- "$d"; printf '[include]\\n\\tpath = %s\\n' $EVIL >> "$d/.git/config"`,
  (dice) =>
    `d=${folder(dice)}/r${dice(3)}; git init -q -- "$d"; git -C "$d" config core.worktree ${pick(dice, ["/", "../..", "../../.."])}`,
  (dice) =>
    `d=${folder(dice)}/r${dice(3)}; git init -q -- "$d"; printf '* filter=f\\n' > "$d/.gitattributes"; printf '[filter "f"]\\n\\tclean = %s\\n' $P >> "$d/.git/config"; echo x > "$d/f"; git -C "$d" add -A`,
  // Pointers.
  (dice) => {
    const target = folder(dice);
    const from = pick(dice, ["sub", "src", "a/b", "p1", "p2"]);
    const up = from === "a/b" ? "../.." : "..";
    return `mkdir -p -- ${from} ${target}/g; (cd -- ${target}/g && ${gitFolder(".")}; cat $EVIL > config); printf 'gitdir: %s/%s/g${pick(dice, ["", "\\n", " ", "\\r\\n"])}' ${up} ${target} > ${from}/.git; git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),${from}`;
  },
  (dice) =>
    `mkdir -p p${dice(3)} /tmp/evil; echo "gitdir: ${pick(dice, ["/tmp/evil", "$OUTSIDE", "../link/.git", "../../outside"])}" > p${dice(3)}/.git; ln -sfn $OUTSIDE link`,
  (dice) =>
    `d=c${dice(3)}; mkdir -p "$d" evil/objects evil/refs; cat $EVIL > evil/config; mkdir -p evil/hooks; cp $P evil/hooks/post-checkout; echo 'ref: refs/heads/main' > "$d/HEAD"; echo ../evil > "$d/commondir"`,
  (dice) => `ln -sfn ${pick(dice, ["../sub/.git", "$OUTSIDE", "../bare"])} ${pick(dice, ["src", "a/b"])}/.git`,
  () => `mv sub sub-old; ${gitFolder("sub/.git")}; cat $EVIL > sub/.git/config`,
  () =>
    `mkdir -p .git/modules/mod; ${gitFolder(".git/modules/mod")}; cat $EVIL > .git/modules/mod/config; mkdir -p mod; echo 'gitdir: ../.git/modules/mod' > mod/.git; git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),mod`,
  // Links, pipes and hard links.
  (dice) =>
    `f=.git/${pick(dice, ["logs/HEAD", "logs/refs/heads/main", "HEAD", "index", "COMMIT_EDITMSG", "ORIG_HEAD", "packed-refs", "refs/heads/new", "objects/info/alternates"])}; rm -f "$f"; mkdir -p "$(dirname "$f")"; ln -s $PRECIOUS "$f"`,
  (dice) =>
    `ln -sfn $OUTSIDE .git/${pick(dice, ["rr-cache", "modules", "worktrees", "objects/pack", "logs/refs"])} || true`,
  () => "rm -f .git/COMMIT_EDITMSG; mkfifo .git/COMMIT_EDITMSG",
  (dice) =>
    `ln ${pick(dice, [".git/config", ".vscode/settings.json", "sub/.git/config", "n0/.git/config", "r0/.git/config"])} hard${dice(3)}`,
  (dice) => `cat $EVIL >> hard${dice(3)}`,
  () => "git init -q n0; ln n0/.git/config hard0",
  // Changes to what the owner has.
  (dice) => `cat $EVIL >> ${pick(dice, [".git/config", "sub/.git/config", "bare/config", "v1/.npmrc", "v299/.npmrc"])}`,
  (dice) => `cp $P ${pick(dice, [".git/hooks", "sub/.git/hooks", "bare/hooks", ".githooks"])}/${pick(dice, HOOKS)}`,
  (dice) => `rm -rf ${pick(dice, [".vscode", ".git/hooks", "sub", "bare", "v298", ".npmrc"])}`,
  (dice) => `mv ${pick(dice, [".vscode", ".git", "sub", "bare", "src"])} moved${dice(3)}`,
  (dice) => `rm -rf ${pick(dice, ["src", "bare"])}; ln -s $OUTSIDE ${pick(dice, ["src", "bare"])}`,
  () => "git config core.fsmonitor $P; git config alias.st '!'$P; git config core.hooksPath /tmp",
  // What waits to go on, and what cannot be looked into.
  () =>
    "mkdir -p .git/rebase-merge; for f in head-name onto orig-head; do git rev-parse HEAD > .git/rebase-merge/$f; done; : > .git/rebase-merge/interactive; echo refs/heads/main > .git/rebase-merge/head-name; echo exec $P > .git/rebase-merge/git-rebase-todo",
  (dice) =>
    `d=${pick(dice, ["src", "a", "vendor", "lock"])}; mkdir -p "$d"/k/.vscode; cp $P "$d"/k/.envrc; chmod ${pick(dice, ["000", "555", "444", "111"])} "$d"/k "$d"`,
  (dice) =>
    `n=$(printf 'd%.0s' $(seq 200)); d=deep${dice(2)}; mkdir "$d" && cd "$d"; for i in $(seq 17); do mkdir $n && cd -P $n 2>/dev/null || break; done; mkdir .vscode`,
  (dice) =>
    `for i in $(seq ${2 + dice(4)}); do mkdir -p many$i/objects many$i/refs; echo 'ref: refs/heads/main' > many$i/HEAD; printf '[core]\\n\\tbare = true\\n' > many$i/config; done`,
  (dice) => `for i in 1 2 3 4 5; do cat $EVIL >> many$i/config; done; ln many${1 + dice(5)}/config hard${dice(3)}`,
];

/** One run of an agent. */
export function plantAtRandom(dice: Dice): string {
  const lines: string[] = [];
  for (let count = 2 + dice(4); count > 0; count -= 1) lines.push(`(${pick(dice, PLANTS)(dice)}) 2>/dev/null`);
  return `${lines.join("\n")}\ntrue`;
}
