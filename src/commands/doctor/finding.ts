import type { Facts } from './facts.ts'
import type { Known } from './known.ts'

/** What is wrong. `error`: requests fail, sessions are useless, or a client can do what it must not. */
export interface Problem {
  readonly severity: 'error' | 'warning'
  /** What was found, with its value. */
  readonly problem: string
  /** What it does to requests, in one sentence. */
  readonly why: string
  /** The field and its value, or what to do. */
  readonly fix: string
}

/** A problem, and the check that found it. */
export type Finding = Problem & { readonly check: string }

/** One problem, several or none. */
export type Problems = Problem | readonly Problem[]

/** Looks at facts for one kind of mistake. A text: why it could not be looked for. */
export interface Check {
  readonly name: string
  readonly run: (facts: Facts) => Problems | string
}

/** What all checks say together. */
export interface Diagnosis {
  readonly findings: readonly Finding[]
  readonly passed: readonly string[]
  readonly notChecked: readonly { readonly check: string; readonly why: string }[]
}

type PartName = { [K in keyof Facts]: Facts[K] extends Known<unknown> ? K : never }[keyof Facts]
type Part<K extends PartName> = Extract<Facts[K], { readonly kind: 'known' }>['value']

/** A check of one part of the facts, which is not made where that part is unknown. */
export const checkOf = <K extends PartName>(
  name: string,
  part: K,
  find: (value: Part<K>, facts: Facts) => Problems | string,
): Check => ({
  name,
  run: (facts) => {
    const known: Known<Part<K>> = facts[part]
    return known.kind === 'known' ? find(known.value, facts) : known.why
  },
})

/** Makes all checks. */
export const diagnose = (checks: readonly Check[], facts: Facts): Diagnosis => {
  const results = checks.map(({ name, run }) => {
    const found = run(facts)
    return { check: name, result: typeof found === 'object' ? [found].flat() : found }
  })
  return {
    findings: results.flatMap(({ check, result }) =>
      typeof result === 'string' ? [] : result.map((problem) => ({ check, ...problem })),
    ),
    passed: results.filter(({ result }) => typeof result !== 'string' && result.length === 0).map(({ check }) => check),
    notChecked: results.flatMap(({ check, result }) => (typeof result === 'string' ? [{ check, why: result }] : [])),
  }
}

/** `1 error, 2 warnings, 3 checks passed` and what stands before it. */
export const renderDiagnosis = ({ findings, passed, notChecked }: Diagnosis): string => {
  const errors = findings.filter(({ severity }) => severity === 'error').length
  const blocks = findings
    .toSorted((a, b) => a.severity.localeCompare(b.severity))
    .map(({ severity, check, problem, why, fix }) =>
      [`${severity.padEnd(8)} ${check}: ${problem}`, `  why: ${why}`, `  fix: ${fix}`, ''].join('\n'),
    )
  const skipped = [...Map.groupBy(notChecked, ({ why }) => why)].map(
    ([reason, all]) => `not checked: ${all.map(({ check }) => check).join(', ')}\n  why: ${reason}`,
  )
  const counts = [
    count(errors, 'error'),
    count(findings.length - errors, 'warning'),
    `${count(passed.length, 'check')} passed`,
  ]
  return [...blocks, ...skipped, ...(skipped.length > 0 ? [''] : []), counts.join(', ')].join('\n')
}

const count = (number: number, what: string): string => `${number} ${what}${number === 1 ? '' : 's'}`
