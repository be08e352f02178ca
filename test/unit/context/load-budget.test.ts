import { expect, test } from '@jest/globals'
import { loadBudgetMs } from '../../../src/context/prepare-kv.ts'
import { createCostModel } from '../../../src/routing/cost-model.ts'

const costs = createCostModel({ initialMsPerToken: 1, initialMsPerByte: 1e-3, initialLoadMs: 0 })

test.each([
  { name: 'at most the time of recomputing', tokens: 3000, maxLoadMs: 10_000, budgetMs: 3000 },
  {
    name: 'longer where the pod computes other prompts first',
    tokens: 3000,
    backlogMs: 500,
    maxLoadMs: 10_000,
    budgetMs: 3500,
  },
  { name: 'at most the maximum', tokens: 60_000, maxLoadMs: 10_000, budgetMs: 10_000 },
  { name: 'at least the time of the calls', tokens: 10, maxLoadMs: 10_000, budgetMs: 1000 },
  { name: 'the maximum when that is less', tokens: 10, maxLoadMs: 200, budgetMs: 200 },
  { name: 'the calls alone when no KV is known', tokens: 0, maxLoadMs: 10_000, budgetMs: 1000 },
  { name: 'the maximum when no KV is known', tokens: 0, maxLoadMs: 200, budgetMs: 200 },
])('loadBudgetMs is $name', ({ tokens, backlogMs = 0, maxLoadMs, budgetMs }) => {
  expect(loadBudgetMs({ costs, maxLoadMs }, 'm', { tokens, backlogMs })).toBe(budgetMs)
})
