// Runs turns in this process, without a server: node engine.ts "what does this project do?"
import { isHeddleError, openHeddle } from "heddle/engine";

try {
  await using heddle = await openHeddle();
  const turn = await heddle.startTurn({
    input: process.argv[2] ?? "what does this project do?",
    approvalPolicy: "on-request",
    onDelta: ({ channel, delta }) => void (channel === "text" && process.stdout.write(delta)),
  });
  for await (const { body } of turn) {
    switch (body.type) {
      case "approval.requested":
        console.error(`? ${body.question.kind}: declined`);
        await turn.answer(body.approvalId, "decline");
        break;
      case "item.completed":
        if (body.item.type === "commandExecution") console.error(`$ ${body.item.command}`);
        break;
    }
  }
  const { status, failure, usage } = await turn.result();
  console.error(
    `${status}${failure === undefined ? "" : ` (${failure.code})`}, ${usage.outputTokens} tokens, thread ${turn.threadId}`,
  );

  // The same thread continues, in the same sandbox and with the same model.
  const second = await heddle.startTurn({ thread: turn.threadId, input: "say it in one sentence" });
  console.log((await second.result()).message);
} catch (error) {
  if (!isHeddleError(error)) throw error;
  console.error(`${error.code}: ${error.message}`);
  process.exitCode = 1;
}
