import { z } from 'zod'
import { milliseconds, modelPriority, requirement, resourceCount, resourceName } from './config-values.ts'

/** Who waits for what when there is not enough for all. */
export const admission = z
  .strictObject({
    requirements: z
      .array(requirement)
      .default([])
      .describe(
        'What work requires, by kind, or by kind and model: `prefill=R1:1`, `prefill/my-model=R1:4 R2:1`, `load=R3:1`. `prefill` holds it from before a turn is forwarded until the turn has ended, since that is when Envoy tells; `load` while stored KV is loaded into a pod. None: nothing is ever held up.',
      ),
    resources: z
      .array(resourceCount)
      .default([])
      .describe(
        'How many copies of a resource there are: `R1:10` at every pod, or of a global one; `R2:5:0` or `R2:5:host:port` at one pod, by its index in `routing.pods` or its address. Without it there are as many as the largest requirement.',
      ),
    globalResources: z
      .array(resourceName)
      .default([])
      .describe('Resources that all pods share; every pod has the others to itself.'),
    priorities: z.array(modelPriority).default([]).describe('Priorities of models, as `my-model=2`; 1 goes first.'),
    defaultPriority: z.int().min(1).max(999_999_999).default(1).describe('Priority of every other model.'),
    maxWaiting: z
      .int()
      .min(0)
      .max(10_000)
      .default(100)
      .describe(
        'How many turns and loads may wait for resources at once. Beyond that the last in the order is refused.',
      ),
    maxWaitMs: milliseconds
      .max(600_000)
      .default(5_000)
      .describe('How long a turn may wait for resources before it is refused.'),
    messageTimeoutMs: milliseconds
      .default(30_000)
      .describe(
        'How long Envoy waits for a decision at most, within which waiting and loading must fit: `max_message_timeout` of its ext_proc filter, and never more than 30 s in the filter for turns.',
      ),
  })
  .prefault({})

/** Answers that are given again. */
export const responseCache = z
  .strictObject({
    models: z
      .array(z.string().min(1))
      .default([])
      .describe('Models whose deterministic requests may be answered from the response cache; no other model ever is.'),
    maxBytes: z
      .int()
      .min(0)
      .max(1_000_000_000_000)
      .default(0)
      .describe(
        'Size of the response cache in this process’s memory, shared by all its models; 0 switches it off. Answers that are just being collected for it take up to as much again.',
      ),
    maxEntryBytes: z
      .int()
      .min(1_024)
      .max(1_073_741_824)
      .default(1_048_576)
      .describe('Answers that take more than this together with their request are not kept.'),
  })
  .prefault({})
