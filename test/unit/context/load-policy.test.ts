import { once } from 'node:events'
import { describe, expect, test } from '@jest/globals'
import { createLoadPolicy, withBudget } from '../../../src/context/load-policy.ts'
import { createCostModel } from '../../../src/routing/cost-model.ts'
import { watchedScope } from '../../support/gateway-request.ts'

describe('createLoadPolicy', () => {
  const policy = (maxLoadMs: number) =>
    createLoadPolicy({
      estimate: createCostModel({ initialMsPerToken: 1, initialMsPerByte: 1e-3, initialLoadMs: 0 }),
      maxLoadMs,
    })

  test.each([
    { name: 'never longer than recomputing', tokens: 3000, maxLoadMs: 10_000, budgetMs: 3000 },
    { name: 'never longer than the maximum', tokens: 60_000, maxLoadMs: 10_000, budgetMs: 10_000 },
    { name: 'long enough for the calls themselves', tokens: 10, maxLoadMs: 10_000, budgetMs: 1000 },
    { name: 'the maximum even below that', tokens: 10, maxLoadMs: 200, budgetMs: 200 },
    { name: 'the calls alone when nothing is stored', tokens: undefined, maxLoadMs: 10_000, budgetMs: 1000 },
    { name: 'the maximum when nothing is stored', tokens: undefined, maxLoadMs: 200, budgetMs: 200 },
  ])('waits $name', ({ tokens, maxLoadMs, budgetMs }) => {
    expect(policy(maxLoadMs).budgetMs('m', tokens)).toBe(budgetMs)
  })
})

test.each([
  { name: 'a load that is sooner there', bytes: 999_000, worthwhile: true },
  { name: 'no load that takes as long as computing', bytes: 1_000_000, worthwhile: false },
])('the policy makes $name', ({ bytes, worthwhile }) => {
  const estimate = createCostModel({ initialMsPerToken: 1, initialMsPerByte: 1e-3, initialLoadMs: 0 })
  const kv = { artefactId: 'a', payload: '', tokens: 1000, bytes, turn: 1 }
  expect(createLoadPolicy({ estimate, maxLoadMs: 10_000 }).isWorthwhile('m', kv)).toBe(worthwhile)
})

describe('withBudget', () => {
  test('resolves to what the work does', async () => {
    await expect(withBudget({ budgetMs: 500, scope: watchedScope() }, async () => 'done')).resolves.toBe('done')
  })

  test('rejects with what the work throws', async () => {
    const work = async (): Promise<never> => {
      throw new Error('engine')
    }

    await expect(withBudget({ budgetMs: 500, scope: watchedScope() }, work)).rejects.toThrow('engine')
  })

  test('fires the signal when the budget is spent', async () => {
    const scope = watchedScope()

    const reason = await withBudget({ budgetMs: 0.4, scope }, async (signal) => {
      await once(signal, 'abort')
      return signal.reason
    })

    expect(reason).toMatchObject({ name: 'TimeoutError' })
    expect(scope.signal.aborted).toBe(false)
  })

  test('fires the signal when the client leaves', async () => {
    const scope = watchedScope()

    const fired = withBudget({ budgetMs: 60_000, scope }, async (signal) => {
      const abort = once(signal, 'abort')
      scope.leave()
      await abort
      return signal.aborted
    })

    await expect(fired).resolves.toBe(true)
  })

  test('starts with a fired signal when the client has left already', async () => {
    const scope = watchedScope()
    scope.leave()

    await expect(withBudget({ budgetMs: 500, scope }, async (signal) => signal.aborted)).resolves.toBe(true)
  })

  test.each([
    { budgetMs: 1000, extensions: [] },
    { budgetMs: 1000.5, extensions: [2001] },
    { budgetMs: 8000, extensions: [9000] },
  ])('asks Envoy for more time only where it is needed: $budgetMs ms', async ({ budgetMs, extensions }) => {
    const scope = watchedScope()

    await withBudget({ budgetMs, scope }, async () => undefined)

    expect(scope.extensions).toEqual(extensions)
  })
})
