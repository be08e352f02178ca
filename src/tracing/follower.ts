import { AsyncLocalStorage } from 'node:async_hooks'
import {
  type Attributes,
  type Context,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  type Tracer,
  trace,
} from '@opentelemetry/api'
import type { ParentSpan } from '../context/request-trace.ts'
import type { SpanFacts, SpanName } from './attributes.ts'

/** A span that is not over. */
export interface OpenSpan {
  readonly name: SpanName
  /** W3C form, for others. */
  readonly traceparent: string
  readonly traceId: string
  readonly spanId: string
  /** Spans that begin while the work runs, whatever it awaits, are children of this one. */
  run<T>(work: () => T): T
  set(facts: SpanFacts): void
  /** Marks the span as failed, with `error.type`. */
  fail(type: string): void
  end(): void
}

/** Opens spans below the one that runs. */
export interface Follower {
  /** Undefined: the trace is not sampled. `parent` undefined: a new trace. */
  open(name: SpanName, parent: ParentSpan | undefined): OpenSpan | undefined
  /** A child of the span that runs. Undefined: none does. */
  child(name: SpanName): OpenSpan | undefined
  /** The span that runs. */
  current(): OpenSpan | undefined
  /** Runs work that is no part of the span that runs. */
  apart<T>(work: () => T): T
}

/** Kept by the async context alone: what runs outside of a followed request costs nothing. */
export const createFollower = (tracer: Tracer): Follower => {
  const running = new AsyncLocalStorage<{ readonly span: OpenSpan; readonly context: Context } | undefined>()

  const open = (name: SpanName, parent: Context): OpenSpan | undefined => {
    const kind = name === 'request' ? SpanKind.SERVER : SpanKind.INTERNAL
    const span = tracer.startSpan(`context_cache.${name}`, { kind }, parent)
    if (!span.isRecording()) return undefined
    const context = trace.setSpan(parent, span)
    const opened = openSpan(name, span, (work) => running.run({ span: opened, context }, work))
    return opened
  }

  return {
    open: (name, parent) => open(name, parent === undefined ? ROOT_CONTEXT : contextOf(parent)),
    child: (name) => {
      const parent = running.getStore()
      return parent && open(name, parent.context)
    },
    current: () => running.getStore()?.span,
    apart: (work) => running.run(undefined, work),
  }
}

const openSpan = (name: SpanName, span: Span, run: OpenSpan['run']): OpenSpan => {
  const { traceId, spanId } = span.spanContext()
  return {
    name,
    traceId,
    spanId,
    traceparent: `00-${traceId}-${spanId}-01`,
    run,
    set: (facts) => void span.setAttributes(present(facts)),
    fail: (type) => {
      span.setAttribute('error.type' satisfies keyof SpanFacts, type)
      span.setStatus({ code: SpanStatusCode.ERROR })
    },
    end: () => span.end(),
  }
}

const contextOf = ({ traceId, spanId, isSampled }: ParentSpan): Context =>
  trace.setSpanContext(ROOT_CONTEXT, {
    traceId,
    spanId,
    isRemote: true,
    traceFlags: isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE,
  })

const present = (facts: SpanFacts): Attributes =>
  Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined))
