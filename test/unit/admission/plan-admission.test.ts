import { describe, expect, test } from '@jest/globals'
import type { AdmissionPlan, AdmissionSettings } from '../../../src/admission/plan/plan-admission.ts'
import { planAdmission } from '../../../src/admission/plan/plan-admission.ts'

/** The copies there are, as a table: what is global, and what every pod has. */
const countTable = (
  plan: Pick<AdmissionPlan, 'resources' | 'countOf'>,
  pods: readonly string[],
): {
  readonly global: Readonly<Record<string, number>>
  readonly pods: readonly Readonly<Record<string, number>>[]
} => {
  const counts = (isGlobal: boolean, pod: string) =>
    Object.fromEntries(
      plan.resources
        .filter((resource) => resource.isGlobal === isGlobal)
        .map(({ name }) => [name, plan.countOf(name, pod)]),
    )
  return { global: counts(true, ''), pods: pods.map((pod) => counts(false, pod)) }
}

const pods = ['10.0.0.1:8000', '10.0.0.2:8000']

const settings = (given: Partial<AdmissionSettings>): AdmissionSettings => ({
  requirements: [],
  resources: [],
  globalResources: [],
  priorities: [],
  defaultPriority: 1,
  ...given,
})

const planOf = (given: Partial<AdmissionSettings>, among: readonly string[] | 'changing' = pods): AdmissionPlan => {
  const outcome = planAdmission(settings(given), among === 'changing' ? undefined : among)
  if (outcome.kind === 'planned') return outcome.plan
  throw new Error(outcome.kind === 'off' ? 'off' : outcome.problems.map(({ message }) => message).join('\n'))
}

const problemsOf = (given: Partial<AdmissionSettings>, among: readonly string[] | undefined) => {
  const outcome = planAdmission(settings(given), among)
  return outcome.kind === 'invalid' ? outcome.problems : []
}

/** The three models of the rate limiter document. */
const models = ['prefill/A=R1:4 R2:4', 'prefill/B=R2:5 R3:10 R4:5', 'prefill/C=R1:1 R3:7 R4:2']

describe('the examples of the rate limiter document', () => {
  test('models A, B and C: by default the largest requirement of each resource', () => {
    expect(countTable(planOf({ requirements: models }), ['10.0.0.1:8000'])).toEqual({
      global: {},
      pods: [{ R1: 4, R2: 5, R3: 10, R4: 5 }],
    })
  })

  test('two devices: R1:10, R2:5:0, R2:8:1 and R3:2, of which R3 is global', () => {
    const plan = planOf({
      requirements: ['prefill=R1:4 R2:5 R3:2'],
      resources: ['R1:10', 'R2:5:0', 'R2:8:1', 'R3:2'],
      globalResources: ['R3'],
    })
    expect(countTable(plan, pods)).toEqual({
      global: { R3: 2 },
      pods: [
        { R1: 10, R2: 5 },
        { R1: 10, R2: 8 },
      ],
    })
  })

  test('each model needs what it lists, and any other model nothing', () => {
    const plan = planOf({ requirements: models })
    expect(plan.needsOf('prefill', 'A')).toEqual([
      { resource: 'R1', count: 4 },
      { resource: 'R2', count: 4 },
    ])
    expect(plan.needsOf('prefill', 'D')).toEqual([])
    expect(plan.needsOf('prefill', undefined)).toEqual([])
    expect(plan.needsOf('load', 'A')).toEqual([])
  })
})

describe('requirements', () => {
  test('without any, admission control is off, whatever else is set', () => {
    expect(planAdmission(settings({ priorities: ['A=2'] }), pods)).toEqual({ kind: 'off' })
  })

  test('of a model go before those of the kind, resource by resource', () => {
    const plan = planOf({ requirements: ['prefill=slots:1 memory:2', 'prefill/big=slots:4', 'prefill/free=slots:0'] })
    expect(plan.needsOf('prefill', 'big')).toEqual([
      { resource: 'slots', count: 4 },
      { resource: 'memory', count: 2 },
    ])
    expect(plan.needsOf('prefill', 'free')).toEqual([{ resource: 'memory', count: 2 }])
    expect(plan.needsOf('prefill', 'other')).toEqual([
      { resource: 'slots', count: 1 },
      { resource: 'memory', count: 2 },
    ])
    expect(plan.needsOf('prefill', undefined)).toEqual(plan.needsOf('prefill', 'other'))
  })

  test('may be spread over several items', () => {
    const plan = planOf({ requirements: ['prefill/A=R1:1', 'prefill/A=R2:1'] })
    expect(plan.needsOf('prefill', 'A')).toHaveLength(2)
  })
})

describe('counts', () => {
  test.each([
    { name: 'an index', text: 'R1:7:1' },
    { name: 'an address', text: 'R1:7:10.0.0.2:8000' },
  ])('of a pod may be given by $name, and the others keep theirs', ({ text }) => {
    const plan = planOf({ requirements: ['prefill=R1:2'], resources: ['R1:3', text] })
    expect(pods.map((pod) => plan.countOf('R1', pod))).toEqual([3, 7])
  })

  test('of pods that come and go may be given by address', () => {
    const plan = planOf({ requirements: ['prefill=R1:2'], resources: ['R1:7:10.0.0.9:8000'] }, 'changing')
    expect(['10.0.0.9:8000', '10.0.0.10:8000'].map((pod) => plan.countOf('R1', pod))).toEqual([7, 2])
  })

  test('that every pod has of its own make the one for all irrelevant', () => {
    const plan = planOf({ requirements: ['prefill=R1:2'], resources: ['R1:1', 'R1:2:0', 'R1:2:1'] })
    expect(pods.map((pod) => plan.countOf('R1', pod))).toEqual([2, 2])
  })
})

describe('priorities', () => {
  test('are those of the models, else the default', () => {
    const plan = planOf({ requirements: models, priorities: ['A=1', 'B=3'], defaultPriority: 2 })
    expect(['A', 'B', 'C', undefined].map((model) => plan.priorityOf(model))).toEqual([1, 3, 2, 2])
  })
})

describe('what cannot work', () => {
  test.each<{
    readonly name: string
    readonly given: Partial<AdmissionSettings>
    readonly among?: 'changing'
    readonly option: keyof AdmissionSettings
    readonly message: string
  }>([
    {
      name: 'a requirement that exceeds the count',
      given: { requirements: models, resources: ['R3:2'], globalResources: ['R3'] },
      option: 'resources',
      message:
        'prefill/B needs 10 of R3, and there may be only 2: set it to at least 10 here, or require less in admission.requirements',
    },
    {
      name: 'a requirement that exceeds the count of one pod',
      given: { requirements: ['prefill=R2:6'], resources: ['R2:5:0', 'R2:8:1'] },
      option: 'resources',
      message:
        'prefill needs 6 of R2, and there may be only 5: set it to at least 6 here, or require less in admission.requirements',
    },
    {
      name: 'a turn that needs more while it loads than there is',
      given: { requirements: ['prefill=gpu:1', 'load=gpu:1'] },
      option: 'resources',
      message:
        'prefill and load together need 2 of gpu, and there may be only 1: set it to at least 2 here, or require less in admission.requirements',
    },
    {
      name: 'a count of what nothing requires',
      given: { requirements: models, resources: ['R5:1'] },
      option: 'resources',
      message: 'Nothing requires R5; name it in admission.requirements, or leave it out here',
    },
    {
      name: 'a global resource that nothing requires',
      given: { globalResources: ['R5'] },
      option: 'globalResources',
      message: 'Nothing requires R5; name it in admission.requirements, or leave it out here',
    },
    {
      name: 'a pod that a global resource belongs to',
      given: { requirements: models, resources: ['R1:9:0'], globalResources: ['R1'] },
      option: 'resources',
      message: 'R1 is global and belongs to no pod; write R1:9',
    },
    {
      name: 'an index that is too high',
      given: { requirements: models, resources: ['R1:9:2'] },
      option: 'resources',
      message: 'R1: there is no pod 2; routing.pods has the indices 0 to 1',
    },
    {
      name: 'an index of pods that come and go',
      given: { requirements: models, resources: ['R1:9:0'] },
      among: 'changing',
      option: 'resources',
      message: 'R1: pods of routing.dns have no index; name the pod by its host:port',
    },
    {
      name: 'an address that is no pod',
      given: { requirements: models, resources: ['R1:9:10.0.0.3:8000'] },
      option: 'resources',
      message: 'R1: the pod is not in routing.pods; name one of them, or its index',
    },
    {
      name: 'two counts of one pod',
      given: { requirements: models, resources: ['R1:9:0', 'R1:8:10.0.0.1:8000'] },
      option: 'resources',
      message: 'R1 is given twice for the same place; give it once',
    },
    {
      name: 'two counts for all',
      given: { requirements: models, resources: ['R1:9', 'R1:8'] },
      option: 'resources',
      message: 'R1 is given twice for the same place; give it once',
    },
    {
      name: 'two requirements of one resource',
      given: { requirements: ['prefill/A=R1:1', 'prefill/A=R1:2'] },
      option: 'requirements',
      message: 'prefill/A names R1 twice; name it once',
    },
    {
      name: 'two priorities of a model',
      given: { requirements: models, priorities: ['A=1', 'A=2'] },
      option: 'priorities',
      message: 'A has two priorities; give it one',
    },
  ])('$name', ({ given, among, option, message }) => {
    expect(problemsOf(given, among === 'changing' ? undefined : pods)).toEqual([{ option, message }])
  })

  test('is told all at once', () => {
    const given = { requirements: models, resources: ['R1:9:7', 'R5:1'], priorities: ['A=1', 'A=2'] }
    expect(problemsOf(given, pods)).toHaveLength(3)
  })
})
