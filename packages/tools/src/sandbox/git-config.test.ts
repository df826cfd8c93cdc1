import { expect, test } from "vitest";
import { judgeConfig, namedByConfig } from "./git-config.ts";

const FRESH = `[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = false
\tlogallrefupdates = true
[remote "origin"]
\turl = https://example.com/a.git
\tfetch = +refs/heads/*:refs/remotes/origin/*
[branch "main"]
\tremote = origin
\tmerge = refs/heads/main
[user]
\tname = A B
# a remark
; another
`;

test("what git itself writes is harmless", () => {
  expect(judgeConfig(FRESH)).toEqual({});
});

test.for([
  ["core.fsmonitor", "[core]\n\tfsmonitor = /tmp/x\n"],
  ["core.hookspath", "[core]\n\thooksPath = x\n"],
  ["core.sshcommand", "[core]\n\tsshCommand = x\n"],
  ["core.pager", "[core]\n\tpager = x\n"],
  ["core.editor", "[core]\n\teditor = x\n"],
  ["core.attributesfile", "[core]\n\tattributesFile = x\n"],
  ["core.worktree", '[core]\n\tworktree = "/"\n'],
  ["core.worktree", "[core]\n\tworktree = a\n\tworktree = b\n"],
  ["include.path", "[include]\n\tpath = ../x\n"],
  ["includeif.gitdir:/.path", '[includeIf "gitdir:/"]\n\tpath = x\n'],
  ["filter.x.clean", '[filter "x"]\n\tclean = evil\n'],
  ["diff.external", "[diff]\n\texternal = x\n"],
  ["diff.x.textconv", '[diff "x"]\n\ttextconv = x\n'],
  ["merge.x.driver", '[merge "x"]\n\tdriver = x\n'],
  ["alias.st", "[alias]\n\tst = !evil\n"],
  ["credential.helper", "[credential]\n\thelper = !evil\n"],
  ["gpg.program", "[gpg]\n\tprogram = x\n"],
  ["remote.o.uploadpack", '[remote "o"]\n\tuploadpack = x\n'],
  ["remote.o.url", '[remote "o"]\n\turl = ext::sh -c evil\n'],
  ["remote.o.url", '[remote "o"]\n\turl = "ext::sh -c evil"\n'],
  ["url.x.insteadof", '[url "x"]\n\tinsteadOf = y\n'],
  ["submodule.a.update", '[submodule "a"]\n\tupdate = !evil\n'],
  ["protocol.ext.allow", '[protocol "ext"]\n\tallow = always\n'],
  ["sequence.editor", "[sequence]\n\teditor = x\n"],
  ["core.fsmonitor", "[CORE]\r\n\tFSMonitor = x\r\n"],
] as const)("%s is harmful", ([key, text]) => {
  expect(judgeConfig(text)).toEqual({ harmful: key });
});

test.for([
  "[core] fsmonitor = x\n",
  "[core]\n\tbare = a\\\n\tb\n",
  "[core\n",
  "= x\n",
  "[a]b]\n",
  "[core]\n\tbare = \0\n",
  `[core]\n${"#".repeat(70_000)}`,
])("what cannot be understood is harmful: %j", (text) => {
  expect(judgeConfig(text).harmful).toBeDefined();
});

test("12.2: where the work tree is, is told for a closer look", () => {
  expect(judgeConfig("[core]\n\tworktree = ../../../sub\n")).toEqual({ worktree: "../../../sub" });
});

test("12.2: a configuration for one worktree is judged like any other, so it may be switched on", () => {
  expect(judgeConfig("[extensions]\n\tworktreeConfig = true\n[core]\n\tsparseCheckout = true\n")).toEqual({});
});

test("12.2: what a configuration makes git run or read is told", () => {
  const text =
    '[core]\n\thooksPath = my hooks\n\tfsmonitor = tools/watch -v\n\tworktree = ../x\n\tbare = false\n[alias]\n\tt = !tools/t.sh --all\n[includeIf "gitdir:/"]\n\tpath = ../more.inc\n[remote "o"]\n\turl = ../other\n';
  expect(namedByConfig(text)).toEqual([
    { key: "core.hookspath", path: "my hooks" },
    { key: "core.fsmonitor", path: "tools/watch" },
    { key: "alias.t", path: "tools/t.sh" },
    { key: "includeif.gitdir:/.path", path: "../more.inc" },
  ]);
});
