// The agents themselves, against what `make run` starts.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { call } from '../integration/support/client.ts'
import { eventually } from '../support/eventually.ts'
import { agentNames } from './agents.ts'
import { type AgentsStack, startAgentsStack, type TurnLine } from './agents-stack.ts'
import { type Conversation, startConversation } from './conversation.ts'
import { installAgents } from './install-agents.ts'
import { type Stopwatch, startStopwatch } from './stopwatch.ts'

let modules: string
let stack: AgentsStack
let stopwatch: Stopwatch
const conversations: Conversation[] = []

beforeAll(async () => {
  modules = await installAgents()
  ;[stack, stopwatch] = await Promise.all([startAgentsStack(), startStopwatch()])
}, 1_800_000)
afterAll(async () => {
  await Promise.all([...conversations.map((one) => one.end()), stopwatch?.stop(), stack?.stop()])
  console.log(table())
})

/** By agent: time to the first text of a conversation's second turn, on another pod, and tokens of its prompt. */
const figures = {
  with: new Map<string, string>(),
  without: new Map<string, string>(),
  tokens: new Map<string, number>(),
}
const table = (): string =>
  [
    'Time to the first text of the second turn, on another pod; one run each',
    '| agent | prompt tokens | without the gateway | with it |',
    '| --- | ---: | ---: | ---: |',
    ...[...figures.with].map(
      ([name, ms]) => `| ${name} | ${figures.tokens.get(name)} | ${figures.without.get(name) ?? '–'} | ${ms} |`,
    ),
  ].join('\n')

describe.each(agentNames)('%s', (name) => {
  const begin = async (url: string): Promise<Conversation> => {
    const conversation = await startConversation(name, modules, url)
    conversations.push(conversation)
    return conversation
  }
  /** The turns that end meanwhile, but for those of title generators, whose prompts are short. */
  const turnsOf = async (count: number, act: () => Promise<unknown>): Promise<readonly TurnLine[]> => {
    const { length } = stack.turns()
    await act()
    return eventually(() => {
      const turns = stack
        .turns()
        .slice(length)
        .filter(({ promptTokens }) => promptTokens > 3000)
      return turns.length === count && turns
    })
  }
  const turnOf = async (act: () => Promise<unknown>): Promise<TurnLine> => {
    const [turn] = await turnsOf(1, act)
    if (turn === undefined) throw new Error('no turn')
    return turn
  }
  const expectHit = ({ cacheStatus, promptTokens, cachedTokens }: TurnLine): void => {
    expect(cacheStatus).toMatch(/^hit; /)
    expect(cachedTokens).toBeGreaterThan(0.9 * promptTokens)
  }

  test('continues a conversation from its KV', async () => {
    const conversation = await begin(stack.url)
    const first = await turnOf(() => conversation.say('Say hello.'))
    expect(first.cacheStatus).toBe('miss; reason=new_session')
    const second = await turnOf(() => conversation.say('Say it again.'))
    expect(second.session).toBe(first.session)
    expectHit(second)
  })

  test('resumes a conversation on another pod when its own has died', async () => {
    stopwatch.sendTo(stack.url)
    const conversation = await begin(stopwatch.url)
    const first = await turnOf(() => conversation.say('Say hello.'))
    const startAgain = await stack.killPod(first.pod)
    try {
      stopwatch.firstTextMs()
      const second = await turnOf(() => conversation.say('Say it again.'))
      expect(second).toMatchObject({ session: first.session, cacheStatus: expect.stringMatching(/^hit; tier=store; /) })
      expect(second.pod).not.toBe(first.pod)
      expectHit(second)
      figures.with.set(name, `${Math.round(stopwatch.firstTextMs())} ms`)
      figures.tokens.set(name, second.promptTokens)
    } finally {
      await startAgain()
    }
  })

  test('keeps two conversations at once apart', async () => {
    const both = await Promise.all([begin(stack.url), begin(stack.url)])
    const sayBoth = (prompt: string) => turnsOf(2, () => Promise.all(both.map((one) => one.say(prompt))))
    const sessionsOf = (turns: readonly TurnLine[]) => turns.map(({ session }) => session).sort()
    const first = await sayBoth('Say hello.')
    const second = await sayBoth('Say it again.')
    expect(new Set(sessionsOf(first)).size).toBe(2)
    expect(sessionsOf(second)).toEqual(sessionsOf(first))
    for (const turn of second) expectHit(turn)
  })

  test('resumes a conversation without the gateway, for the table', async () => {
    const [one = '', other = ''] = stack.pods.map((pod) => `http://${pod}`)
    stopwatch.sendTo(one)
    const conversation = await begin(stopwatch.url)
    await conversation.say('Say hello.')
    for (let slot = 0; slot < 4; slot += 1) await call(`${other}/slots/${slot}?action=erase`, { body: {} })
    stopwatch.sendTo(other)
    stopwatch.firstTextMs()
    await conversation.say('Say it again.')
    const withoutMs = stopwatch.firstTextMs()
    expect(withoutMs).toBeGreaterThan(0)
    figures.without.set(name, `${Math.round(withoutMs)} ms`)
  })
})
