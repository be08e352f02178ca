import type { PolicyName } from '../../../src/routing/policies.ts'
import { type FleetSettings, loadOverheadMs, metricsIntervalMs, type SlotSettings } from '../fleet-settings.ts'
import { type ReplayResult, summariseReplay } from '../replay-record.ts'
import { createSeededRandom } from '../seeded-random.ts'
import { blockTokens, type TraceRequest } from '../trace.ts'
import { createVirtualTime } from '../virtual-time.ts'
import { commonTokens, createKvStore } from './kv-store.ts'
import { type PlannedTurn, planTurns } from './plan-turns.ts'
import { createProcessors } from './processors.ts'
import { createSlotConnector } from './slot-connector.ts'
import { slotFigures, type TurnRow } from './slot-figures.ts'
import { createSlotGateway } from './slot-gateway.ts'
import { createSlotPod } from './slot-pod.ts'

/** Replays a trace on a fleet whose pods have slots, in virtual time, under one policy. */
export const replayWithSlots = async (
  trace: readonly TraceRequest[],
  {
    settings,
    policy,
    slots,
  }: { readonly settings: FleetSettings; readonly policy: PolicyName; readonly slots: SlotSettings },
): Promise<ReplayResult> => {
  const time = createVirtualTime()
  const { nowMs, at } = time
  const processors = createProcessors(time, slots.processors)
  const pods = Array.from({ length: settings.pods }, () =>
    createSlotPod({ slots: slots.perPod, settings, time, processors }),
  )
  const store = createKvStore({ maxBlocks: settings.storeBlocks })
  const transferMs = (tokens: number): number => loadOverheadMs + (tokens * 1000) / settings.loadTokensPerSecond
  const connector = createSlotConnector({ time, store, transferMs })
  const gateway = createSlotGateway({
    settings,
    policy,
    nowMs,
    random: createSeededRandom(),
    time,
    pods,
    store,
    connector,
  })
  const { plan, conversations } = planTurns(trace)
  const rows: TurnRow[] = []
  let answered = 0

  const run = async ({ request, conversation, before, next }: PlannedTurn): Promise<void> => {
    const arrivedMs = nowMs()
    const turn = await gateway.admit(conversation, request)
    const { slot, present, loadMs, waitedMs } = turn
    const markOfPresent = slot === undefined ? undefined : turn.pod.mark(slot)
    const forwardedMs = nowMs()
    await new Promise<void>((done) => processors.compute(slots.turnOverheadMs, done))
    let ttfbMs = 0
    let computedTokens = request.inputTokens
    const ran = await turn.pod.run({
      slot,
      outputTokens: request.outputTokens,
      tokensToCompute: (mark) => {
        const cachedTokens =
          present === undefined || mark !== markOfPresent ? 0 : commonTokens(present.request, request)
        // The last token is always computed: the first one that is generated comes out of it.
        computedTokens = Math.max(1, request.inputTokens - cachedTokens)
        return computedTokens
      },
      onFirstToken: () => {
        ttfbMs = nowMs() - forwardedMs
      },
    })
    answered += 1
    const knownTokens = before === undefined ? undefined : commonTokens(before, request)
    const isLoaded = loadMs !== undefined
    const ttftMs = forwardedMs - arrivedMs + ttfbMs
    rows.push({ request, ttftMs, waitedMs, computedTokens, knownTokens, isLoaded, hadSlot: slot !== undefined })
    if (slots.waitsForAnswers && next !== undefined) arriveAfterAnswer(next)
    await gateway.ended(turn, ran, { computedTokens, ttfbMs })
  }

  const arrive = (timeMs: number, turn: PlannedTurn): void => at(timeMs, () => void run(turn))
  const plannedMs = ({ timestampMs }: TraceRequest): number => timestampMs * settings.timeScale
  const arriveAfterAnswer = (turn: PlannedTurn): void => {
    const { pauseMs } = turn.request
    const soonestMs = pauseMs === undefined ? plannedMs(turn.request) : nowMs() + pauseMs * settings.timeScale
    arrive(Math.max(soonestMs, nowMs()), turn)
  }

  for (const turn of plan)
    if (!slots.waitsForAnswers || turn.before === undefined) arrive(plannedMs(turn.request), turn)
  const readMetrics = (): void => {
    gateway.readMetrics(pods.map((pod) => pod.reading()))
    if (answered < trace.length) at(nowMs() + metricsIntervalMs, readMetrics)
  }
  const [first] = plan
  if (first !== undefined) at(plannedMs(first.request), readMetrics)
  await time.runAll()

  const prefills = rows.map(({ request, computedTokens, isLoaded }) => {
    const reusedBlocks = Math.floor((request.inputTokens - computedTokens) / blockTokens)
    return { durationMs: 0, computedTokens, reusedBlocks, heldBlocks: isLoaded ? 0 : reusedBlocks }
  })
  const ttftsMs = rows.map(({ ttftMs }) => ttftMs)
  const result = summariseReplay(trace, { policy, settings, ttftsMs, prefills, pods, conversations })
  return { ...result, slots: slotFigures(rows) }
}
