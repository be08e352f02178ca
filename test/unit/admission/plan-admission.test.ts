import { expect, test } from '@jest/globals'
import type { AdmissionPlan, AdmissionSettings, ResourceNeed } from '../../../src/admission/plan/plan-admission.ts'
import { outcomeOf, planOf } from '../../support/planned-admission.ts'

const pods = ['10.0.0.1:8000', '10.0.0.2:8000']

const countsOf = (plan: AdmissionPlan, resource: string, among = pods): readonly number[] =>
  among.map((pod) => plan.countOf(resource, pod))

const byResource = (needs: readonly ResourceNeed[]) =>
  Object.fromEntries(needs.map(({ resource, count }) => [resource, count]))

/** The three models of the rate limiter document. */
const models = ['prefill/A=R1:4 R2:4', 'prefill/B=R2:5 R3:10 R4:5', 'prefill/C=R1:1 R3:7 R4:2']
/** Models whose requirements replace those of their kind. */
const replacing = ['prefill=slots:1 memory:2', 'prefill/big=slots:4', 'prefill/big=disk:1', 'prefill/free=slots:0']

test('a resource has as many copies as its largest requirement by default', () => {
  const plan = planOf({ requirements: models }, pods)
  expect(plan.resources.map(({ name, isGlobal }) => [name, isGlobal, ...countsOf(plan, name)])).toEqual([
    ['R1', false, 4, 4],
    ['R2', false, 5, 5],
    ['R3', false, 10, 10],
    ['R4', false, 5, 5],
  ])
})

test.each([
  ['the document’s two devices', ['R1:10', 'R2:5:0', 'R2:8:1', 'R3:2'], { R1: [10, 10], R2: [5, 8], R3: [2, 2] }],
  ['a count of one pod by its address', ['R1:5', 'R1:7:10.0.0.2:8000'], { R1: [5, 7] }],
  ['counts of all pods that hide a small one for all', ['R1:1', 'R1:4:0', 'R1:4:1'], { R1: [4, 4] }],
])('configured counts apply: %s', (_name, resources, expected) => {
  const plan = planOf({ requirements: ['prefill=R1:4 R2:5 R3:2'], resources, globalResources: ['R3'] }, pods)
  expect(plan.resources.filter(({ isGlobal }) => isGlobal).map(({ name }) => name)).toEqual(['R3'])
  expect(Object.fromEntries(Object.keys(expected).map((name) => [name, countsOf(plan, name)]))).toEqual(expected)
})

test('pods that come and go have counts by address', () => {
  const plan = planOf({ requirements: ['prefill=R1:2'], resources: ['R1:7:10.0.0.9:8000'] }, undefined)
  expect(countsOf(plan, 'R1', ['10.0.0.9:8000', '10.0.0.10:8000'])).toEqual([7, 2])
})

test.each([
  ['needs the requirements of its model', models, 'prefill', 'A', { R1: 4, R2: 4 }],
  ['of a model without requirements needs nothing', models, 'prefill', 'D', {}],
  ['of an unknown model needs nothing', models, 'prefill', undefined, {}],
  ['of another kind needs nothing', models, 'load', 'A', {}],
  ['needs what its model replaces or adds', replacing, 'prefill', 'big', { slots: 4, memory: 2, disk: 1 }],
  ['does not need what its model sets to 0', replacing, 'prefill', 'free', { memory: 2 }],
  ['of another model needs the requirements of its kind', replacing, 'prefill', 'other', { slots: 1, memory: 2 }],
  ['of an unknown model needs those of its kind', replacing, 'prefill', undefined, { slots: 1, memory: 2 }],
] as const)('work %s', (_title, requirements, kind, model, expected) => {
  expect(byResource(planOf({ requirements }, pods).needsOf(kind, model))).toEqual(expected)
})

test('a model without a priority has the default one', () => {
  const plan = planOf({ requirements: models, priorities: ['A=1', 'B=3'] }, pods)
  expect(['A', 'B', 'C', undefined].map((model) => plan.priorityOf(model))).toEqual([1, 3, 2, 2])
})

test('the objective of a request takes precedence over its model, if it is known', () => {
  const plan = planOf({ requirements: models, priorities: ['A=1'], objectives: ['batch=9'] }, pods)
  expect(['batch', 'other', undefined].map((objective) => plan.priorityOf('A', objective))).toEqual([9, 1, 1])
})

test('admission is off without requirements, whatever else is set', () => {
  expect(planOf({ priorities: ['A=2'] }, pods).resources).toEqual([])
})

const global = (...names: readonly string[]) => ({ globalResources: names })
const resources = (...items: readonly string[]) => ({ resources: items })
const requirements = (...items: readonly string[]) => ({ requirements: items })
const unused = 'nothing requires R5; name it in admission.requirements, or leave it out here'
const twice = 'R1 is given twice for the same place; give it once'
const tooFew = (subject: string, count: number, resource: string, least: number): string =>
  `${subject} ${count} of ${resource}, and there may be only ${least}: set it to at least ${count} here, or require less in admission.requirements`

test.each<[string, Partial<AdmissionSettings>, keyof AdmissionSettings, string]>([
  [
    'a requirement beyond the count',
    { ...resources('R3:2'), ...global('R3') },
    'resources',
    tooFew('prefill/B needs', 10, 'R3', 2),
  ],
  [
    'a requirement beyond the count of one pod',
    { ...requirements('prefill=R2:6'), ...resources('R2:5:0', 'R2:8:1') },
    'resources',
    tooFew('prefill needs', 6, 'R2', 5),
  ],
  [
    'a turn and its load that need more than there is',
    requirements('prefill=gpu:1', 'load=gpu:1'),
    'resources',
    tooFew('prefill and load together need', 2, 'gpu', 1),
  ],
  ['a count of a resource that nothing requires', resources('R5:1'), 'resources', unused],
  ['a global resource that nothing requires', { ...requirements(), ...global('R5') }, 'globalResources', unused],
  [
    'a pod with a global resource',
    { ...resources('R1:9:0'), ...global('R1') },
    'resources',
    'R1 is global and belongs to no pod; write R1:9',
  ],
  [
    'an index that is too high',
    resources('R1:9:2'),
    'resources',
    'R1: there is no pod 2; the pods have the indices 0 to 1',
  ],
  [
    'an address that is no pod',
    resources('R1:9:10.0.0.3:8000'),
    'resources',
    'R1: the pod is not configured; name one that is, or its index',
  ],
  ['two counts of one pod', resources('R1:9:0', 'R1:8:10.0.0.1:8000'), 'resources', twice],
  ['two counts for all', resources('R1:9', 'R1:8'), 'resources', twice],
  [
    'two requirements of one resource',
    requirements('prefill/A=R1:1', 'prefill/A=R1:2'),
    'requirements',
    'prefill/A names R1 twice; name it once',
  ],
  ['two priorities of a model', { priorities: ['A=1', 'A=2'] }, 'priorities', 'A has two priorities; give it one'],
])('plan is invalid with %s', (_name, given, option, message) => {
  expect(outcomeOf({ requirements: models, ...given }, pods)).toEqual({
    kind: 'invalid',
    problems: [{ option, message }],
  })
})

test('plan is invalid with an index of pods that come and go', () => {
  const message = 'R1: pods by host name, of DNS or Kubernetes have no index; name the pod by its ip:port'
  expect(outcomeOf({ requirements: models, ...resources('R1:9:0') }, undefined)).toMatchObject({
    problems: [{ message }],
  })
})

test('all problems are reported at once', () => {
  const outcome = outcomeOf({ requirements: models, ...resources('R1:9:7', 'R5:1'), priorities: ['A=1', 'A=2'] }, pods)
  expect(outcome).toMatchObject({ problems: { length: 3 } })
})
