/** One conversation as Copilot 1.0.102, Gemini CLI 0.61 and Qwen Code 0.24.4 write it down. */

const STAMP = "2026-11-19T23:46:25.277Z";
const COMMAND = "ls; exit 3";

export function copilotLines(sessionId: string, work: string): readonly object[] {
  const event = (type: string, data: object): object => ({ type, data, id: "e", timestamp: STAMP, parentId: null });
  const usage = (apiCallId: string): object =>
    event("session.usage_record", {
      usage: {
        apiCallId,
        model: "model-1",
        inputTokens: 10,
        outputTokens: 3,
        cacheReadTokens: apiCallId === "c1" ? 4 : 0,
      },
    });
  const answer = (apiCallId: string, content: string): object =>
    event("assistant.message", { messageId: `m-${apiCallId}`, content, model: "model-1", apiCallId, toolRequests: [] });
  const diff = `--- a/dev/null\n+++ b${work}/b.txt\n@@ -1,0 +1,1 @@\n+b\n`;
  return [
    event("session.start", { sessionId, version: 1, producer: "copilot-agent", context: { cwd: work } }),
    event("system.message", { role: "system", content: "You are a terminal assistant." }),
    event("user.message", { content: "please look", transformedContent: "<now/>please look" }),
    event("assistant.turn_start", { turnId: "0" }),
    usage("c1"),
    answer("c1", "I look."),
    event("tool.execution_start", { toolCallId: "t1", toolName: "bash", arguments: { command: COMMAND } }),
    event("permission.requested", { requestId: "p1" }),
    event("permission.completed", { requestId: "p1" }),
    event("tool.execution_complete", {
      toolCallId: "t1",
      success: true,
      result: { content: "a.txt\n<shellId: 0 completed with exit code 3>" },
      shellExecution: { exitCode: 3 },
    }),
    event("assistant.turn_end", { turnId: "0" }),
    usage("c2"),
    answer("c2", ""),
    event("tool.execution_start", {
      toolCallId: "t2",
      toolName: "create",
      arguments: { path: `${work}/b.txt`, file_text: "b\n" },
    }),
    event("tool.execution_complete", {
      toolCallId: "t2",
      success: true,
      result: { content: "Created file", detailedContent: diff },
      fileEdits: [{ path: `${work}/b.txt`, kind: "create" }],
    }),
    usage("c3"),
    answer("c3", "There it is."),
    event("session.shutdown", {}),
  ];
}

export function geminiLines(sessionId: string, work: string): readonly object[] {
  const set = { $set: { lastUpdated: STAMP } };
  const context = { id: "c0", timestamp: STAMP, type: "user", content: [{ text: `<session_context>${work}` }] };
  const message = (id: string, content: string, more: object = {}): object => ({
    id,
    timestamp: STAMP,
    type: "gemini",
    content,
    thoughts: [],
    tokens: { input: 10, output: 3, cached: id === "m1" ? 4 : 0, thoughts: 0, tool: 0, total: 13 },
    model: "model-1",
    ...more,
  });
  const call = (id: string, name: string, args: object, output: string): object => ({
    id,
    name,
    args,
    status: "success",
    result: [
      { functionResponse: { id, name, response: { output: `<untrusted_context>\n${output}\n</untrusted_context>` } } },
    ],
  });
  const shell = call("t1", "run_shell_command", { command: COMMAND }, "Output: a.txt\nExit Code: 3");
  const write = call("t2", "write_file", { file_path: `${work}/b.txt` }, "It is written.");
  return [
    { sessionId, projectHash: "h", startTime: STAMP, lastUpdated: STAMP, kind: "main" },
    { $set: { messages: [context], lastUpdated: STAMP } },
    { id: "u1", timestamp: STAMP, type: "user", content: [{ text: "please look" }] },
    message("m1", "I look."),
    set,
    message("m1", "I look.", { toolCalls: [shell] }),
    { id: "u2", timestamp: STAMP, type: "user", content: [{ functionResponse: { id: "t1", response: {} } }] },
    message("m2", ""),
    message("m2", "", { toolCalls: [write] }),
    { $set: { messages: [context, message("m1", "I look.")] } },
    message("m3", "There it is."),
    set,
  ];
}

export function qwenLines(sessionId: string, work: string): readonly object[] {
  const line = (uuid: string, type: string, more: object): object => ({
    uuid,
    parentUuid: null,
    sessionId,
    timestamp: STAMP,
    type,
    cwd: work,
    version: "0.24.4",
    ...more,
  });
  const answer = (uuid: string, parts: readonly object[]): object =>
    line(uuid, "assistant", {
      provenance: "assistant_output",
      model: "model-1",
      message: { role: "model", parts },
      usageMetadata: {
        promptTokenCount: 10,
        candidatesTokenCount: 3,
        thoughtsTokenCount: 0,
        totalTokenCount: 13,
        cachedContentTokenCount: uuid === "a1" ? 4 : 0,
      },
    });
  const result = (callId: string, name: string, output: string): object =>
    line(`r-${callId}`, "tool_result", {
      provenance: "tool_result",
      message: { role: "user", parts: [{ functionResponse: { id: callId, name, response: { output } } }] },
      toolCallResult: { callId, status: "success" },
    });
  return [
    line("s1", "system", { provenance: "system", subtype: "ui_telemetry", systemPayload: {} }),
    line("u1", "user", { provenance: "real_user", message: { role: "user", parts: [{ text: "please look" }] } }),
    answer("a1", [
      { text: "where could it be", thought: true },
      { text: "I look." },
      { functionCall: { id: "t1", name: "run_shell_command", args: { command: COMMAND } } },
    ]),
    result("t1", "run_shell_command", "Command: ls\nOutput: a.txt\nError: (none)\nExit Code: 3"),
    answer("a2", [{ functionCall: { id: "t2", name: "write_file", args: { file_path: `${work}/b.txt` } } }]),
    result("t2", "write_file", "It is written."),
    answer("a3", [{ text: "There it is." }]),
  ];
}
