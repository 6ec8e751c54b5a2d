/** What happens in a run, as lines for people. */
import { objectText } from './object-text.ts'
import type { Fact } from '../../promises/facts.ts'

/** Undefined for what only fills pages, unless everything is asked for. */
export function eventText(event: Fact, isWhole: true): string
export function eventText(event: Fact, isWhole: boolean): string | undefined
export function eventText(event: Fact, isWhole: boolean): string | undefined {
  switch (event.kind) {
    case 'host':
      return hostText(event, isWhole)
    case 'commit': {
      const { type, resource, version } = event.change
      const { name, resourceVersion } = version.object.metadata
      if (isWhole) return `${event.client} ${type} ${resource.plural}/${name} ${resourceVersion}`
      if (resource.plural === 'events' || (name === 'skyhookd-census' && type === 'MODIFIED')) return undefined
      return `${event.client} ${type} ${resource.plural}/${name} ${objectText(resource.plural, version.object)}`
    }
    case 'answered': {
      const { client, verb, resource, name, code, isCommitted } = event.entry
      if (!isWhole && (isCommitted || code < 400)) return undefined
      return `${client} ${verb} ${resource}/${name} ${code}`
    }
    case 'restored':
      return 'the store of the API server is an older copy'
    case 'action': {
      const { kind, node, skyhook, forMs, detail } = event.action
      const during = event.phase === undefined ? '' : ` (${event.phase})`
      return `ACTION ${kind} ${event.what}${during} ${JSON.stringify({ node, skyhook, forMs, detail })}`
    }
    case 'log': {
      const { level, message, fields } = event.line
      if (!isWhole && (level === 'debug' || level === 'info')) return undefined
      return `${event.host} ${level}: ${message} ${JSON.stringify(fields)}`
    }
  }
}

function hostText({ host, event }: Extract<Fact, { kind: 'host' }>, isWhole: boolean): string | undefined {
  if (isWhole) return `${host} ${JSON.stringify(event)}`
  const { event: what, ...rest } = event
  if (what === 'effect') return event.name.startsWith('api:') ? undefined : `${host} effect ${event.name}`
  if (!('step' in event)) return `${host} ${what} ${JSON.stringify(rest)}`
  const { skyhook, package: name, version, mode } = event.step
  const end = event.event === 'stepEnded' ? ` ${JSON.stringify({ ...event.end, isRecorded: event.isRecorded })}` : ''
  return `${host} ${what} ${skyhook} ${name} ${version} ${mode}${end}`
}
