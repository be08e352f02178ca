import type { Phase, Reply } from './messages.ts'

/** Pairs the messages of one stream with their replies, in order. */
export interface ReplyTimer {
  received(phase: Phase): void
  sent(reply: Reply): void
}

/** Tells `report` how long each reply took. `now` in milliseconds. */
export const createReplyTimer = (
  now: () => number,
  report: (phase: Phase, milliseconds: number) => void,
): ReplyTimer => {
  const waiting: { readonly phase: Phase; readonly since: number }[] = []
  return {
    received: (phase) => {
      waiting.push({ phase, since: now() })
    },
    sent: (reply) => {
      if (reply.kind === 'extend') return
      const index = reply.kind === 'immediate' ? 0 : waiting.findIndex(({ phase }) => phase === reply.phase)
      const [answered] = waiting.splice(0, index + 1).slice(-1)
      if (answered !== undefined) report(answered.phase, now() - answered.since)
    },
  }
}
