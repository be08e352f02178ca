import { describe, expect, test } from '@jest/globals'
import { agentConversationName, agentNames, agentRequests } from '../../../bench/fleet/agents.ts'
import { wayFigures } from '../../../bench/fleet/figures.ts'
import { inferenceApiOf } from '../../../src/openai/create-body.ts'
import { promptMarks } from '../../../src/openai/prompt-marks.ts'
import { allSlices } from '../../support/all-slices.ts'

const history = {
  model: 'm',
  name: agentConversationName('one'),
  seed: 'a run',
  scale: 1,
  messageLength: 240,
  answerLength: 64,
}
const marksOf = ({ path, body }: { readonly path: string; readonly body: string }): readonly string[] =>
  allSlices(promptMarks(Buffer.from(body), inferenceApiOf(path.replace(/\?.*/, '')) ?? 'chat'))

describe.each(agentNames)('%s', (agent) => {
  test('a turn continues the one before, under the same name', () => {
    const [first] = agentRequests(agent, { ...history, turn: 1 })
    const [second] = agentRequests(agent, { ...history, turn: 2 })

    const [last = ''] = marksOf(first).slice(-1)
    expect(marksOf(second)).toContain(last)
    expect(second.headers).toEqual(first.headers)
    expect(Object.values(first.headers).join()).toContain(history.name)
  })

  test('conversations have a name each, and the same instructions and tools', () => {
    const requestOf = (name: string) => agentRequests(agent, { ...history, name, turn: 1 })[0]
    const [one, other] = [requestOf(history.name), requestOf(agentConversationName('other'))]

    expect(other.headers).not.toEqual(one.headers)
    expect(JSON.parse(other.body)).toMatchObject({ tools: JSON.parse(one.body).tools })
  })
})

test('requests are as long as the recorded ones', () => {
  const lengths = agentNames.map((agent) =>
    agentRequests(agent, { ...history, turn: 1 }).map(({ body }) => body.length),
  )

  const recorded = [[40_380], [85_030], [30_725, 2432]]
  const ratios = lengths.map((of, agent) => of.map((length, index) => length / (recorded[agent]?.[index] ?? 0)))
  for (const ratio of ratios.flat()) {
    expect(ratio).toBeGreaterThan(0.9)
    expect(ratio).toBeLessThan(1.1)
  }
})

test('what is sent beside a first turn is no turn of its conversation', () => {
  const seen = { ttftMs: 5, totalMs: 9, promptTokens: 10, cachedTokens: 0, answerTokens: 1, cache: '', status: 200 }
  const row = { ...seen, conversation: 'c', startMs: 0, newTokens: 10, failure: undefined }
  const turns = [
    { ...row, turn: 1 },
    { ...row, turn: 0 },
    { ...row, turn: 2, promptTokens: 20, cachedTokens: 5 },
  ]
  const { first, later, beside } = wayFigures({ turns, durationMs: 1, stormMs: 1, stormFailure: undefined })

  expect([first, later, beside].map((figures) => figures.turns)).toEqual([1, 1, 1])
  expect(later.anewShare).toBe(0.5)
})
