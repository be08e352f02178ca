import { describe, expect, test } from '@jest/globals'
import { createTurnCalls } from '../../../src/sessions/redis/turn-calls.ts'

type Call = readonly [name: string, args: readonly (string | number)[]]

const sessionsIn = ([text]: Call[1]): readonly string[] =>
  [...String(text).matchAll(/^(?:begin|complete)\n(.*)$/gm)].map(([, session = '']) => session)

/** What `turns.lua` answers at the time 1: a text for each turn, empty for what it leaves to other scripts. */
const answerOf = (texts: readonly string[]): string => ['1', ...texts].join('\u001e')

/** Turns of sessions named `usual…` go the short way. */
const openCalls = (answer?: () => Promise<string>) => {
  const calls: Call[] = []
  const runTurn = createTurnCalls({
    run: async (name, args) => {
      calls.push([name, args])
      return { outcome: `by ${name}`, nowMs: 2, detail: args[0] }
    },
    runTurns: async (turns) => {
      calls.push(['turns', [turns]])
      if (answer !== undefined) return answer()
      return answerOf(sessionsIn([turns]).map((session) => (session.startsWith('usual') ? `text of ${session}` : '')))
    },
  })
  return { calls, runTurn }
}

describe('calls of turns', () => {
  test('a turn alone takes one call', async () => {
    const { calls, runTurn } = openCalls()
    const reply = await runTurn('begin', 'usual\ntenant')
    expect(reply).toEqual({ outcome: 'usual', nowMs: 1, detail: 'text of usual' })
    expect(calls).toEqual([['turns', ['begin\nusual\ntenant\n']]])
  })

  test('those of one round of the event loop share calls, in their order, each with its own reply', async () => {
    const { calls, runTurn } = openCalls()
    const names = Array.from({ length: 20 }, (_, index) => `usual ${index}`)
    const replies = await Promise.all(names.map((name, index) => runTurn(index % 2 === 0 ? 'begin' : 'complete', name)))
    expect(replies.map(({ detail }) => detail)).toEqual(names.map((name) => `text of ${name}`))
    expect(calls.map(([, args]) => sessionsIn(args).length)).toEqual([16, 4])
    expect(calls[0]?.[1][0]).toMatch(/^begin\nusual 0\ncomplete\nusual 1\n/)
  })

  test('what cannot go the short way takes a script of its own, and the others do not wait for it', async () => {
    const { calls, runTurn } = openCalls()
    const [odd, usual] = await Promise.all([runTurn('complete', 'odd\ntenant'), runTurn('begin', 'usual')])
    expect(odd).toEqual({ outcome: 'by complete', nowMs: 2, detail: 'odd' })
    expect(usual.outcome).toBe('usual')
    expect(calls.map(([name]) => name)).toEqual(['turns', 'complete'])
    expect(calls[1]?.[1]).toEqual(['odd', 'tenant'])
  })

  test('where there are more texts than turns nobody knows whose is which, and every turn takes a script of its own', async () => {
    const { calls, runTurn } = openCalls(async () => answerOf(['text of another', 'session', 'text']))
    const replies = await Promise.all([runTurn('begin', 'one'), runTurn('begin', 'two')])
    expect(replies.map(({ detail }) => detail)).toEqual(['one', 'two'])
    expect(calls.map(([name]) => name)).toEqual(['turns', 'begin', 'begin'])
  })

  test.each([
    { name: 'all of them', texts: ['', ''] },
    { name: 'the last one', texts: ['text', ''] },
    { name: 'the first one', texts: ['', 'text'] },
  ])('what is left to other scripts may be $name', async ({ texts }) => {
    const { runTurn } = openCalls(async () => answerOf(texts))
    const replies = await Promise.all([runTurn('begin', 'one'), runTurn('begin', 'two')])
    expect(replies.map(({ outcome }) => outcome)).toEqual(texts.map((text) => (text === '' ? 'by begin' : 'usual')))
  })

  test('a call that fails fails each of its turns, and no other', async () => {
    let isAway = true
    const { runTurn } = openCalls(async () => {
      if (isAway) throw new Error('away')
      return answerOf(['text'])
    })
    const failed = await Promise.allSettled([runTurn('begin', 'one'), runTurn('complete', 'two')])
    expect(failed).toMatchObject([{ reason: new Error('away') }, { reason: new Error('away') }])
    isAway = false
    expect(await runTurn('begin', 'three')).toMatchObject({ detail: 'text' })
  })
})
