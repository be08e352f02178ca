import type { SlotSnapshot } from '../slots/slot-snapshot.ts'
import type { Parts } from './parts.ts'

/** One slot and its engine, as they are at this moment. */
export type SlotView =
  | { readonly kind: 'seen'; readonly slot: SlotSnapshot; readonly boot: string; readonly fingerprint: string }
  /** The engine has no slot of this number; asking it to act on it would hit another one. */
  | { readonly kind: 'no-such-slot' }
  | { readonly kind: 'failed'; readonly cause: unknown }

/** All slots of a pod, and which engine answers there. */
export type PodView =
  | {
      readonly kind: 'seen'
      readonly slots: readonly SlotSnapshot[]
      readonly boot: string
      readonly fingerprint: string
    }
  | { readonly kind: 'failed'; readonly cause: unknown }

export const lookAtPod = async (parts: Parts, pod: string, signal: AbortSignal): Promise<PodView> => {
  if (!parts.pods().includes(pod)) return { kind: 'failed', cause: new Error('the pod is not configured') }
  const [slots, identity] = await Promise.all([parts.client.slots(pod, signal), parts.identities.of(pod, signal)])
  if (slots.kind === 'failed') return slots
  if (identity.kind === 'failed') return identity
  return { kind: 'seen', slots: slots.value, ...identity.value }
}

export const lookAtSlot = async (
  parts: Parts,
  { pod, slot }: { readonly pod: string; readonly slot: number },
  signal: AbortSignal,
): Promise<SlotView> => {
  const view = await lookAtPod(parts, pod, signal)
  if (view.kind === 'failed') return view
  const found = view.slots.find(({ id }) => id === slot)
  if (found === undefined) return { kind: 'no-such-slot' }
  return { kind: 'seen', slot: found, boot: view.boot, fingerprint: view.fingerprint }
}
