/** The key under which a turn's terminal event is appended: the journal lets the first one win. */
export function terminalKey(turnId: string): string {
  return `turn.completed:${turnId}`;
}
