// Conversations of agents, as they send them, with what `make run REDIS=1` starts. That both stores do alike with names: test/contract/sessions.
import { describe, expect, test } from '@jest/globals'
import { eventually } from '../../support/eventually.ts'
import { embeddedPods } from '../support/stack.ts'
import { useStack } from '../support/use-stack.ts'
import { agentShapes, type Prompt, readStream, type Said } from './agent-shapes.ts'

/** Many more tokens than the words of a turn. */
const instructions = Array.from({ length: 40 }, (_, step) => `${step}. Read the files, change one, and run its tests.`)
const agent: Prompt = { instructions: instructions.join('\n'), withTools: true }
const titles: Prompt = { instructions: `You write titles.\n${instructions.slice(0, 30).join('\n')}`, withTools: false }

describe('sessions of names', () => {
  const stack = useStack({ store: 'redis', pods: embeddedPods({ arguments: ['--vocabulary', 'words'] }) })
  const endedTurns = (): number =>
    stack
      .output()
      .split('\n')
      .filter((line) => line.includes('"msg":"turn"')).length

  describe.each(Object.entries(agentShapes))('%s', (name, { request, namedBy }) => {
    /** One prompt under the name. */
    const conversation = (called: string, prompt: Prompt) => {
      const said: Said[] = []
      return async (user: string) => {
        const { path, headers, body } = request(called, prompt, [...said, { user }])
        const response = await fetch(stack.url + path, {
          method: 'POST',
          headers: { 'content-type': 'application/json', ...headers },
          body: JSON.stringify(body),
        })
        const stream = readStream(await response.text())
        said.push({ user, answer: stream.answer })
        return { id: response.headers.get('x-session-id'), cache: response.headers.get('x-context-cache'), ...stream }
      }
    }
    /** Turns that run at once. Resolves when their KV is stored. */
    const run = async <T>(...turns: readonly (() => Promise<T>)[]): Promise<readonly T[]> => {
      const before = endedTurns()
      const answers = await Promise.all(turns.map((turn) => turn()))
      await eventually(() => endedTurns() === before + turns.length)
      return answers
    }

    test('later turns compute less than a tenth of their prompt', async () => {
      const say = conversation(`${name} alone`, agent)
      const [first] = await run(() => say('Say hello.'))
      expect(first?.cache).toBe('miss; reason=new_session')
      expect(stack.output()).toContain(`"namedBy":"${namedBy}"`)
      for (const text of ['Say it again.', 'Now in French.']) {
        const [later] = await run(() => say(text))
        expect(later).toMatchObject({ id: first?.id, cache: expect.stringMatching(/^hit; /) })
        expect(later?.cachedTokens).toBeGreaterThan(0.9 * (later?.promptTokens ?? 0))
      }
    })

    test('a second prompt under the name, at the same time, takes nothing from the first', async () => {
      const [say, title] = [conversation(`${name} titled`, agent), conversation(`${name} titled`, titles)]
      await run(
        () => title('Say hello.'),
        () => say('Say hello.'),
      )
      const later = [
        ...(await run(() => say('Say it again.'))),
        ...(await run(() => title('Say it again.'))),
        ...(await run(
          () => say('Now in French.'),
          () => title('Now in French.'),
        )),
      ]
      for (const { cache, promptTokens, cachedTokens } of later) {
        expect(cache).toMatch(/^hit; /)
        expect(cachedTokens).toBeGreaterThan(0.9 * promptTokens)
      }
    })
  })
})
