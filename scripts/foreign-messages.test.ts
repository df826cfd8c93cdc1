import { expect, test } from "vitest";
import { checkForeignMessages } from "./foreign-messages.ts";
import { plantTree } from "./planted-tree.ts";

const FOREIGN = "the text of a foreign error; use reasonOf(error)";

test("the text of an error that may be Node's or a library's is found in every form", () => {
  const lines = [
    "try { read(); } catch (error) { throw new HeddleError('x', `cannot read: ${error.message}`); }",
    "try { read(); } catch (cause) { const why = cause instanceof Error ? cause.message : String(cause); }",
    "work().catch((error: unknown) => log(String(error)));",
    "child.once('error', (error) => fail(error.message));",
    "const tell = (problem: Error): string => problem.cause.message;",
    "try { parse(); } catch (error) { if (error instanceof TomlError) say(error.message); }",
    "let lost: Error | undefined; throw new HeddleError('x', `not written: ${lost.message}`);",
    "const read = Shape.safeParse(value); if (!read.success) throw new HeddleError('x', reasonOf(read.error));",
    "const made = Shape.safeParse(value); say(made.error?.issues[0]?.message);",
  ];
  using tree = plantTree({ "packages/cli/src/a.ts": `import { TomlError } from "smol-toml";\n${lines.join("\n")}` });
  const { examined, findings } = checkForeignMessages(tree.root);
  expect(examined).toBe(1);
  const zod = "zod's own text; parse with safeParse(value, PLAIN)";
  expect(findings.map(({ at, text }) => [Number(at.split(":")[1]) - 1, text])).toEqual([
    [1, FOREIGN],
    [2, FOREIGN],
    [2, FOREIGN],
    [3, FOREIGN],
    [4, FOREIGN],
    [5, FOREIGN],
    [6, FOREIGN],
    [7, FOREIGN],
    [8, zod],
    [9, zod],
  ]);
});

test("errors of Heddle, what reasonOf makes, messages that are no errors, and tests are left alone", () => {
  using tree = plantTree({
    "packages/cli/src/a.ts": [
      'import { isHeddleError, reasonOf } from "@heddle/protocol";',
      'import { RefusedAddress } from "./refused.ts";',
      "class Own extends Error {}",
      "try { read(); } catch (error) { if (isHeddleError(error)) say(error.message); throw error; }",
      "try { read(); } catch (error) { if (error instanceof RefusedAddress) say(error.message); }",
      "try { read(); } catch (error) { if (error instanceof Own) say(error.message); }",
      "try { read(); } catch (error) { say(reasonOf(error)); }",
      "const show = (failure: HeddleError, { cause }: Retried): string => failure.message + cause.message;",
      "const found = Shape.safeParse(value, PLAIN); say(reasonOf(found.error));",
    ].join("\n"),
    "packages/cli/src/a.test.ts": "try { read(); } catch (error) { say(error.message); }",
  });
  expect(checkForeignMessages(tree.root)).toEqual({ examined: 1, findings: [] });
});
