import { expect, test } from "vitest";
import { harmfulConfigKey } from "./git-config.ts";

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
  expect(harmfulConfigKey(FRESH)).toBeUndefined();
});

test.for([
  ["core.fsmonitor", "[core]\n\tfsmonitor = /tmp/x\n"],
  ["core.hookspath", "[core]\n\thooksPath = x\n"],
  ["core.sshcommand", "[core]\n\tsshCommand = x\n"],
  ["core.pager", "[core]\n\tpager = x\n"],
  ["core.editor", "[core]\n\teditor = x\n"],
  ["core.attributesfile", "[core]\n\tattributesFile = x\n"],
  ["core.worktree", "[core]\n\tworktree = /\n"],
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
  ["extensions.worktreeconfig", "[extensions]\n\tworktreeConfig = true\n"],
  ["protocol.ext.allow", '[protocol "ext"]\n\tallow = always\n'],
  ["sequence.editor", "[sequence]\n\teditor = x\n"],
  ["core.fsmonitor", "[CORE]\r\n\tFSMonitor = x\r\n"],
] as const)("%s is harmful", ([key, text]) => {
  expect(harmfulConfigKey(text)).toBe(key);
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
  expect(harmfulConfigKey(text)).toBeDefined();
});
