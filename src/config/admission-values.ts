import { z } from 'zod'
import {
  isResourceName,
  parsePriority,
  parseRequirement,
  parseResourceCount,
} from '../admission/plan/admission-notation.ts'
import { withShortIpv6 } from '../options/values.ts'

const notation = (parse: (text: string) => unknown, message: string) =>
  z.string().refine((text) => parse(text) !== undefined, message)

/** What a kind of work requires: `prefill=R1:4 R2:1`, `load/model=R3:1`. */
export const requirement = notation(parseRequirement, 'must be like prefill=R1:4 R2:1 or prefill/my-model=R1:4')

/** How many copies of a resource exist: `R1:10`, `R2:5:0`, `R2:5:10.0.0.1:8000`. */
export const resourceCount = notation(parseResourceCount, 'must be like R1:10, R2:5:0 or R2:5:10.0.0.1:8000').overwrite(
  withShortIpv6,
)

export const resourceName = z.string().refine(isResourceName, 'must begin with a letter, of letters, digits, _ and -')

/** `my-model=2` */
export const modelPriority = notation(parsePriority, 'must be like my-model=2, where 1 is the highest')
