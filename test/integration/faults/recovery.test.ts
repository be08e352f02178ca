import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { beforeAll, expect, test } from '@jest/globals'
import { z } from 'zod'
import { eventually } from '../../support/eventually.ts'
import { type HttpResponse, model } from '../support/client.ts'
import { isReady } from '../support/metrics.ts'
import { create, prompt, use } from '../support/sessions.ts'
import { embeddedPods, type StackPod } from '../support/stack.ts'
import { useStack } from '../support/use-stack.ts'

/** More conversations than the pods have slots. */
const topics = ['one', 'two', 'three', 'four', 'five', 'six']
const firstPrompt = prompt(60)

const stack = useStack({
  store: 'redis',
  pods: embeddedPods({ count: 2, slots: 2, contextTokensPerSlot: 8192 }),
  env: { CTX_SESSIONS_COMMAND_TIMEOUT_MS: '1000' },
})

const answer = z.object({
  usage: z.object({ prompt_tokens: z.int(), prompt_tokens_details: z.object({ cached_tokens: z.int() }) }),
})
const usageOf = (response: HttpResponse) => answer.parse(response.body).usage

const cut = 'the answer was cut'
const failures: string[] = []

/** Tokens that the conversation had sent before, and those of them that an engine computed again: as in `make bench-fleet`. */
interface Computed {
  readonly before: number
  readonly anew: number
}

/** Begins a conversation. Each call of what it returns is its next turn. */
const converse = async (topic: string): Promise<() => Promise<Computed>> => {
  let text = `${topic}: ${firstPrompt}`
  const bodyOfTurn = () => ({ model, prompt: text, max_tokens: 2 })
  const first = await create(stack, {
    path: '/v1/completions',
    headers: { 'x-session-ttl': '600' },
    body: bodyOfTurn(),
  })
  const id = first.headers.get('x-session-id') ?? ''
  let before = usageOf(first).prompt_tokens
  return async () => {
    text += ' and more'
    const response = await use(stack, id, { body: bodyOfTurn() }).catch(() => undefined)
    if (response?.status !== 200) {
      failures.push(response === undefined ? cut : `${response.status} ${response.text}`)
      return { before: 0, anew: 0 }
    }
    const { prompt_tokens: tokens, prompt_tokens_details: details } = usageOf(response)
    const computed = { before, anew: Math.max(0, before - details.cached_tokens) }
    before = tokens
    return computed
  }
}

let turns: readonly (() => Promise<Computed>)[] = []
beforeAll(async () => {
  turns = await Promise.all(topics.map(converse))
})

/** The next turn of each conversation. Resolves to the share of what had been sent before that was computed anew. */
const takeRound = async (): Promise<number> => {
  const computed = await Promise.all(turns.map((takeTurn) => takeTurn()))
  const sum = (count: (one: Computed) => number): number => computed.reduce((total, one) => total + count(one), 0)
  return sum(({ anew }) => anew) / sum(({ before }) => before)
}

/** Turn after turn without pauses; the time limit is the minute that a storm may be felt. */
const untilWarm = () => eventually(async () => expect(await takeRound()).toBeLessThan(0.15))

const whileTalking = async (storm: () => Promise<unknown>): Promise<void> => {
  let isOver = false
  const talk = async (): Promise<void> => {
    while (!isOver) await takeRound()
  }
  const passing = storm().finally(() => {
    isOver = true
  })
  await Promise.all([passing, talk()])
}

const kill = async ({ child }: StackPod): Promise<void> => void (await child?.kill())
const startAgain = async (pod: StackPod): Promise<void> => pod.startAgain?.()

const replace = async (pods: readonly StackPod[], betweenThem = async (): Promise<void> => {}): Promise<void> => {
  await Promise.all(pods.map(kill))
  await betweenThem()
  await Promise.all(pods.map(startAgain))
}

const emptyStore = async (): Promise<void> => {
  const files = await stack.kvFiles()
  await Promise.all(files.map((file) => rm(join(stack.kvDirectory, file), { force: true })))
}

/** Longer than the circuit breaker takes to open (five commands of 1 s at most), and than the lease of a slot (6 s). */
const redisAwayMs = 7_000

const storms = [
  {
    storm: 'a pod is killed with everything on it',
    pass: () => whileTalking(() => replace(stack.pods.slice(0, 1))),
    // Envoy sends a turn whose answer has not begun to the other pod.
    mayFail: [cut],
  },
  {
    storm: 'all pods are killed, and nothing is stored',
    // No turn runs meanwhile: nobody could answer it.
    pass: async () => {
      await replace(stack.pods, emptyStore)
      await eventually(() => stack.pods.every(({ address }) => isReady(stack, address)))
    },
    mayFail: [],
  },
  {
    storm: 'the gateway is killed',
    pass: () =>
      whileTalking(async () => {
        await stack.gateway().child.kill()
        await stack.restartGateway()
      }),
    mayFail: [],
  },
  {
    storm: 'Redis is silent',
    pass: () =>
      whileTalking(async () => {
        stack.redis?.child.pause()
        await delay(redisAwayMs)
        stack.redis?.child.resume()
      }),
    mayFail: [],
  },
]

test.each(storms)('$storm: soon after, conversations compute next to nothing anew', async ({ pass, mayFail }) => {
  await untilWarm()
  await pass()
  await untilWarm()
  expect(mayFail).toEqual(expect.arrayContaining(failures.splice(0)))
})
