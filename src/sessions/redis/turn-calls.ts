import { digitsIn } from '../../collections/digits-in.ts'
import type { ScriptReply, SessionScripts } from './session-script-runner.ts'

/** So many turns go out in one call: Redis begins with them while the next ones are still being made, and nobody waits long behind them. */
const turnsPerCall = 16

/** What every turn asks of its session. */
type TurnScript = 'begin' | 'complete'

/**
 * Runs one of the turns' scripts. `lines` are its arguments from the third on, a line each: to the client and to Redis one text costs less than many.
 * The outcome `usual` says that all went the short way, with the session's text as its detail, or text and value of its artefact's key.
 */
export type RunTurn = (name: TurnScript, lines: string) => Promise<ScriptReply>

interface WaitingTurn {
  readonly name: TurnScript
  readonly lines: string
  readonly resolve: (reply: ScriptReply | Promise<ScriptReply>) => void
  readonly reject: (error: unknown) => void
}

/**
 * Joins what the turns of one round of the event loop ask into few calls of `turns.lua`. A turn alone goes out as soon as what made it has run. What
 * cannot go the short way takes a second call, of a script of its own.
 */
export const createTurnCalls = ({ run, runTurns }: SessionScripts): RunTurn => {
  let waiting: WaitingTurn[] = []

  const call = async (turns: readonly WaitingTurn[]): Promise<void> => {
    let reply: string
    try {
      reply = await runTurns(textOf(turns))
    } catch (error) {
      for (const { reject } of turns) reject(error)
      return
    }
    const headEnd = endOf(reply, 0)
    const nowMs = digitsIn(reply, 0, headEnd)
    const details = detailsIn(reply, headEnd, turns.length)
    let index = 0
    for (const { name, lines, resolve } of turns) {
      const detail = details[index] ?? ''
      resolve(detail === '' ? run(name, lines.split('\n')) : { outcome: 'usual', nowMs, detail })
      index += 1
    }
  }

  const send = (): void => {
    if (waiting.length === 0) return
    const turns = waiting
    waiting = []
    void call(turns)
  }

  return (name, lines) =>
    new Promise((resolve, reject) => {
      if (waiting.length === 0) process.nextTick(send)
      waiting.push({ name, lines, resolve, reject })
      if (waiting.length === turnsPerCall) send()
    })
}

const textOf = (turns: readonly WaitingTurn[]): string => {
  let text = ''
  for (const { name, lines } of turns) text += `${name}\n${lines}\n`
  return text
}

const separator = '\u001e'

const endOf = (reply: string, start: number): number => {
  const end = reply.indexOf(separator, start)
  return end < 0 ? reply.length : end
}

/**
 * What `turns.lua` says of each turn, from the first separator at `start` on; empty for what it leaves to other scripts. A session whose text somebody
 * else wrote may have the separator in it. Then there are more texts than turns, and no telling which is whose: all go the long way, where each is read by
 * itself.
 */
const detailsIn = (reply: string, start: number, count: number): readonly string[] => {
  const details: string[] = []
  let at = start
  while (at < reply.length) {
    const end = endOf(reply, at + 1)
    details.push(reply.slice(at + 1, end))
    at = end
  }
  return details.length === count ? details : []
}
