'use strict';
(() => {
  // Names are others' texts: they become text nodes, and never markup.
  const data = JSON.parse(document.getElementById('data').textContent);
  const KINDS = {
    dropped: ['×', 'dropped'], restored: ['↺', 'restored'], added: ['+', 'added'], renamed: ['↔', 'renamed'],
    widened: ['↑', 'widened'], relaxed: ['?', 'may be NULL'], required: ['!', 'NOT NULL'], default: ['=', 'default'],
    padded: ['∅', 'padded'], described: ['¶', 'described'], created: ['•', 'created'], oldest: ['•', 'in the oldest schema'],
  };
  const ORDER = Object.keys(KINDS);
  const OPEN_AT_FIRST = 6;

  const el = (tag, attributes = {}, ...children) => {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name === 'style') for (const [key, set] of Object.entries(value)) node.style.setProperty(key, set);
      else if (value === true) node.setAttribute(name, '');
      else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
    }
    node.append(...children.filter((child) => child !== null && child !== undefined));
    return node;
  };
  const bdi = (text) => el('bdi', {}, text);
  const number = (n) => n.toLocaleString('en');
  const plural = (n, noun) => `${number(n)} ${noun}${n === 1 ? '' : 's'}`;
  const size = (bytes) => {
    const units = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'];
    let n = bytes, unit = 0;
    while (n >= 1000 && unit < units.length - 1) { n /= 1000; unit += 1; }
    return `${n >= 100 || unit === 0 ? Math.round(n) : n.toFixed(1)} ${units[unit]}`;
  };
  const time = (iso) => (iso ? `${iso.slice(0, 10)} ${iso.slice(11, 16)} UTC` : 'time not known');
  const maker = (version) => version.by === 'run' ? `dbt run ${version.run}`
    : version.by === 'creation' ? 'as the table was created' : version.by === 'docs' ? 'descriptions only' : 'not by a recorded run of dbt-sparkevolve';
  const who = (version) => maker(version) + (version.gone ? `, or before it: ${plural(version.gone, 'schema')} removed by maintenance` : '');
  const svg = (tag, attributes, ...children) => {
    const node = document.createElementNS('http://www.w3.org/2000/svg', tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  };

  // What is told of the mark that has the focus, or that the pointer is on.
  const tip = document.getElementById('tip');
  let anchor = null;
  const show = (button, content) => {
    tip.replaceChildren(...content);
    tip.hidden = false;
    anchor = button;
    settle();
  };
  const settle = () => {
    const box = anchor.getBoundingClientRect(), own = tip.getBoundingClientRect();
    const below = box.bottom + 10 + own.height < window.innerHeight;
    tip.style.top = `${Math.max(8, below ? box.bottom + 10 : box.top - own.height - 10)}px`;
    tip.style.left = `${Math.min(Math.max(8, box.left + box.width / 2 - own.width / 2), window.innerWidth - own.width - 8)}px`;
  };
  const hide = () => { tip.hidden = true; anchor = null; };
  const tells = (button, content) => {
    for (const event of ['mouseenter', 'focus', 'click']) button.addEventListener(event, () => show(button, content()));
    for (const event of ['mouseleave', 'blur']) button.addEventListener(event, hide);
  };
  document.addEventListener('keydown', (event) => { if (event.key === 'Escape') hide(); });
  const scrolled = () => { if (anchor && anchor === document.activeElement) settle(); else hide(); };
  document.addEventListener('scroll', scrolled, { capture: true, passive: true });

  const bullets = (texts) => el('ul', {}, ...texts.map((text) => el('li', {}, bdi(text))));
  const snapshotsOf = (model, version) => {
    const found = model.snapshots.filter((snapshot) => snapshot.schema === version.schema);
    if (!found.length) return null;
    const rows = found[found.length - 1].rows;
    return el('small', {}, `${plural(found.length, 'snapshot')} with it, the first ${found[0].id}`,
      rows === undefined ? '' : `; then ${plural(rows, 'row')}`);
  };
  const aboutVersion = (model, version, texts) => [
    el('p', {}, el('strong', {}, `Schema ${version.schema}${version.current ? ', the current one' : ''}`)),
    texts.length ? bullets(texts.length > 8 ? [...texts.slice(0, 7), `and ${texts.length - 7} more`] : texts) : null,
    el('small', {}, time(version.at)), el('small', {}, who(version)), snapshotsOf(model, version),
    ...version.also.slice(0, 5).map((also) => el('small', {}, `also loaded from other columns since ${time(also.at)}, dbt run ${also.run}`)),
  ].filter(Boolean);

  const chart = (model) => {
    const known = model.snapshots.filter((snapshot) => snapshot.rows !== undefined);
    if (known.length < 2) return null;
    const most = Math.max(1, ...known.map((snapshot) => snapshot.rows));
    const x = (n) => (n / (known.length - 1)) * 1000, y = (rows) => 78 - (rows / most) * 72;
    const line = known.map((snapshot, n) => `${n ? `H${x(n).toFixed(1)}V` : `M0 `}${y(snapshot.rows).toFixed(1)}`).join('');
    const last = known[known.length - 1];
    const said = `${number(known[0].rows)} to ${number(last.rows)} rows over ${plural(known.length, 'snapshot')}`;
    return el('figure', {},
      svg('svg', { class: 'rows', viewBox: '0 0 1000 84', preserveAspectRatio: 'none', role: 'img', 'aria-label': `Rows: ${said}` },
        svg('path', { class: 'area', d: `${line}V78H0Z` }), svg('path', { d: line })),
      el('figcaption', {}, said));
  };

  const aboutSnapshot = (model, snapshot) => el('tr', {},
    el('td', {}, time(snapshot.at)), el('td', {}, snapshot.operation),
    el('td', { class: 'num' }, snapshot.added === undefined ? '' : `+${number(snapshot.added)}`),
    el('td', { class: 'num' }, snapshot.deleted === undefined ? '' : `−${number(snapshot.deleted)}`),
    el('td', { class: 'num' }, snapshot.rows === undefined ? '' : number(snapshot.rows)),
    el('td', { class: 'num' }, snapshot.bytes === undefined ? '' : size(snapshot.bytes)),
    el('td', { class: 'num' }, snapshot.schema === null ? '' : String(snapshot.schema)),
    el('td', { class: 'mono' }, snapshot.id));

  const later = (summary, build) => {
    const details = el('details', { class: 'more' }, el('summary', {}, summary));
    details.addEventListener('toggle', () => { if (details.open && details.childElementCount === 1) details.append(build()); });
    return details;
  };
  const snapshotTable = (model) => el('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': `Snapshots of ${model.name}` },
    el('table', {},
      el('thead', {}, el('tr', {}, ...['Time', 'Operation', 'Added', 'Deleted', 'Rows', 'Size', 'Schema', 'Snapshot']
        .map((title) => el('th', { scope: 'col' }, title)))),
      el('tbody', {}, ...[...model.snapshots].reverse().map((snapshot) => aboutSnapshot(model, snapshot)))));
  const asText = (model) => el('ol', { class: 'history', start: '0' }, ...model.versions.map((version) =>
    el('li', {}, `Schema ${version.schema}${version.current ? ' (current)' : ''}, ${time(version.at)}, ${who(version)}`,
      bullets([...version.changes, ...version.padded.map((path) => `padded ${path}`)]))));

  // A lane for each column; fields are folded below the column that they are in.
  class Timeline {
    constructor(model) {
      this.model = model;
      this.n = model.versions.length;
      this.children = new Map();
      this.byId = new Map(model.lanes.map((lane) => [lane.id, lane]));
      for (const lane of model.lanes) {
        if (lane.parent !== null) this.children.set(lane.parent, [...(this.children.get(lane.parent) || []), lane]);
      }
      this.unfolded = new Set();
      this.rows = new Map();
    }
    depth(lane) { return lane.parent === null ? 0 : 1 + this.depth(this.byId.get(lane.parent)); }
    isGone(lane) { return lane.spans[lane.spans.length - 1][1] !== this.n - 1; }
    at(place) { return `${((place + .5) / this.n) * 100}%`; }
    build() {
      const step = this.n > 60 ? 30 : this.n > 16 ? 44 : 80;
      const heads = el('div', { class: 'heads' }, el('div', { class: 'name' }, 'column'), el('div', { class: 'track' },
        ...this.model.versions.map((version, place) => this.head(version, place))));
      this.sheet = el('div', { class: 'sheet', style: { '--n': String(this.n), '--step': `${step}px` } }, heads,
        ...this.model.lanes.map((lane) => this.row(lane)));
      this.empty = el('p', { class: 'none', hidden: true }, 'No column of this table has that.');
      this.sheet.append(this.empty);
      this.box = el('div', { class: 'lanes', role: 'group', 'aria-label': `Columns of ${this.model.name} over ${plural(this.n, 'schema')}; arrow keys move between events` }, this.sheet);
      this.box.addEventListener('keydown', (event) => this.move(event));
      // What happened last is what is looked for.
      requestAnimationFrame(() => { this.box.scrollLeft = this.box.scrollWidth; });
      return this.box;
    }
    head(version, place) {
      const label = this.n > 60 ? [el('b', {}, String(version.schema))]
        : [el('b', {}, `#${version.schema}`), version.at ? version.at.slice(this.n > 16 ? 5 : 0, 10) : '?'];
      const button = el('button', { type: 'button', class: `head ${version.by}`, tabindex: '-1', style: { left: this.at(place) },
        'aria-label': `Schema ${version.schema}, ${time(version.at)}, ${who(version)}` }, ...label);
      tells(button, () => aboutVersion(this.model, version, [...version.changes, ...version.padded.map((path) => `padded ${path}`)]));
      return button;
    }
    row(lane) {
      const inside = this.children.get(lane.id) || [], depth = this.depth(lane);
      const twist = inside.length ? el('button', { type: 'button', class: 'twist', 'aria-expanded': 'false',
        'aria-label': `Fields inside ${lane.name}` }, '▸') : null;
      if (twist) twist.addEventListener('click', () => this.fold(lane, !this.unfolded.has(lane.id)));
      const full = `${lane.path.join('.')}: ${lane.type}, field id ${lane.id}`;
      const name = el('div', { class: 'name', title: full, style: { '--depth': String(depth) } }, twist,
        el('span', { class: 'label' }, bdi(lane.name), el('small', {}, bdi(lane.type))));
      const bars = lane.spans.map(([from, to]) => el('span', { class: to === this.n - 1 ? 'bar open' : 'bar', style: {
        left: this.at(from), right: to === this.n - 1 ? '0' : `${100 - ((to + 1) / this.n) * 100}%` } }));
      const places = new Map();
      for (const [place, kind, text] of lane.marks) places.set(place, [...(places.get(place) || []), [kind, text]]);
      const marks = [...places].sort((a, b) => a[0] - b[0]).map(([place, events]) => this.mark(lane, place, events));
      const row = el('div', { class: this.isGone(lane) ? 'lane gone' : 'lane', role: 'group', 'aria-label': full },
        name, el('div', { class: 'track' }, ...bars, ...marks));
      row.hidden = depth > 0;
      this.rows.set(lane.id, { row, twist });
      return row;
    }
    mark(lane, place, events) {
      const version = this.model.versions[place];
      const sorted = [...events].sort((a, b) => ORDER.indexOf(a[0]) - ORDER.indexOf(b[0]));
      const [kind] = sorted[0];
      const texts = sorted.map(([, text]) => text);
      const button = el('button', { type: 'button', class: `mark ${kind}`, tabindex: '-1', style: { left: this.at(place) },
        'data-kinds': sorted.map(([name]) => name).join(' '),
        'aria-label': `${texts.join('; ')}. Schema ${version.schema}, ${time(version.at)}, ${who(version)}` },
        KINDS[kind][0], sorted.length > 1 ? el('i', { 'aria-hidden': 'true' }, String(sorted.length)) : null);
      tells(button, () => aboutVersion(this.model, version, texts));
      return button;
    }
    fold(lane, isOpen) {
      if (isOpen) this.unfolded.add(lane.id); else this.unfolded.delete(lane.id);
      this.filter(this.chosen);
    }
    // chosen: the ids of the lanes that are looked for; null for all.
    filter(chosen) {
      this.chosen = chosen;
      const wanted = new Set();
      if (chosen) for (const id of chosen) for (let lane = this.byId.get(id); lane; lane = this.byId.get(lane.parent)) wanted.add(lane.id);
      let count = 0;
      for (const lane of this.model.lanes) {
        const parent = lane.parent === null ? null : this.rows.get(lane.parent);
        const isShown = chosen ? wanted.has(lane.id)
          : lane.parent === null || (this.unfolded.has(lane.parent) && !parent.row.hidden);
        const { row, twist } = this.rows.get(lane.id);
        row.hidden = !isShown;
        count += isShown ? 1 : 0;
        if (twist) {
          const isOpen = chosen ? (this.children.get(lane.id) || []).some((child) => wanted.has(child.id)) : this.unfolded.has(lane.id);
          twist.textContent = isOpen ? '▾' : '▸';
          twist.setAttribute('aria-expanded', String(isOpen));
        }
      }
      this.empty.hidden = count > 0;
      // One of the marks can be reached with Tab, the others from there.
      for (const mark of this.sheet.querySelectorAll('.mark[tabindex="0"]')) mark.tabIndex = -1;
      const first = this.sheet.querySelector('.lane:not([hidden]) .mark');
      if (first) first.tabIndex = 0;
    }
    move(event) {
      const from = event.target;
      if (!from.classList.contains('mark') || !event.key.startsWith('Arrow')) return;
      const row = from.closest('.lane'), inRow = [...row.querySelectorAll('.mark')];
      let next = null;
      if (event.key === 'ArrowLeft' || event.key === 'ArrowRight') {
        next = inRow[inRow.indexOf(from) + (event.key === 'ArrowRight' ? 1 : -1)];
      } else {
        const step = event.key === 'ArrowDown' ? 'nextElementSibling' : 'previousElementSibling';
        let other = row[step];
        while (other && (other.hidden || !other.querySelector('.mark'))) other = other[step];
        const left = parseFloat(from.style.left);
        next = other && [...other.querySelectorAll('.mark')].reduce((best, mark) =>
          (Math.abs(parseFloat(mark.style.left) - left) < Math.abs(parseFloat(best.style.left) - left) ? mark : best));
      }
      event.preventDefault();
      if (!next) return;
      from.tabIndex = -1;
      next.tabIndex = 0;
      next.focus({ preventScroll: true });
      next.scrollIntoView({ block: 'nearest', inline: 'nearest' });
    }
  }

  class Model {
    constructor(model, isOpen) {
      this.model = model;
      this.text = [model.node, model.relation, ...(model.versions || []).map((version) => version.run)].join('\n').toLowerCase();
      this.laneTexts = (model.lanes || []).map((lane) =>
        [lane.id, [lane.path.join('.'), lane.type, ...lane.names].join('\n').toLowerCase(), new Set(lane.marks.map(([, kind]) => kind))]);
      const columns = (model.lanes || []).filter((lane) => lane.parent === null && lane.spans[lane.spans.length - 1][1] === model.versions.length - 1);
      const sum = model.reason ? 'nothing to show'
        : `${plural(columns.length, 'column')}, ${plural(model.versions.length, 'schema')}`;
      this.body = el('div', { class: 'body' });
      this.details = el('details', { class: 'model', id: model.node, open: isOpen },
        el('summary', {}, el('h2', {}, bdi(model.name)), el('code', { class: 'about' }, bdi(model.relation)), el('span', { class: 'sum' }, sum)), this.body);
      this.details.addEventListener('toggle', () => this.build());
      if (isOpen) this.build();
    }
    build() {
      if (this.body.childElementCount || !this.details.open) return;
      const model = this.model;
      if (model.reason) {
        this.body.append(el('p', { class: 'reason' }, bdi(model.reason)));
        return;
      }
      this.timeline = new Timeline(model);
      const facts = model.facts.map((fact) => el('div', { title: fact.description }, el('dt', {}, fact.label),
        el('dd', {}, fact.id === 'bytes' ? size(fact.value) : fact.id === 'last_modified' ? time(fact.value)
          : typeof fact.value === 'number' ? number(fact.value) : bdi(String(fact.value)))));
      const drawn = this.timeline.build();
      const more = model.more_snapshots ? `, and ${number(model.more_snapshots)} older ones` : '';
      this.body.append(...[el('dl', { class: 'facts' }, ...facts), drawn,
        later(`All changes as text`, () => asText(model)),
        model.snapshots.length ? later(`${plural(model.snapshots.length, 'snapshot')}${more}, rows and sizes`,
          () => el('div', {}, chart(model), snapshotTable(model))) : null].filter(Boolean));
      this.timeline.filter(this.chosen === undefined ? null : this.chosen);
    }
    // Returns the number of columns that are looked for.
    filter(words, kinds) {
      const isNamed = words.every((word) => this.text.includes(word));
      const found = this.laneTexts.filter(([, text, has]) =>
        (isNamed || words.every((word) => text.includes(word) || this.text.includes(word))) && (!kinds.size || [...kinds].some((kind) => has.has(kind))));
      const isAll = isNamed && !kinds.size;
      this.details.hidden = !isAll && !found.length;
      this.chosen = isAll ? null : new Set(found.map(([id]) => id));
      if (words.length + kinds.size && !this.details.hidden && !isAll) this.details.open = true;
      if (this.timeline) this.timeline.filter(this.chosen);
      return this.details.hidden ? 0 : found.length;
    }
  }

  const main = document.getElementById('models');
  const models = data.models.map((model, n) => new Model(model, n < OPEN_AT_FIRST));
  main.append(...models.map((model) => model.details));
  if (!models.length) main.append(el('p', { class: 'none' }, 'This project has no incremental model and no snapshot.'));

  const kinds = new Set(), search = document.getElementById('search'), status = document.getElementById('found');
  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const columns = models.reduce((sum, model) => sum + model.filter(words, kinds), 0);
    const shown = models.filter((model) => !model.details.hidden).length;
    status.textContent = `${plural(shown, 'table')}, ${plural(columns, 'column')} and fields`
      .replace(/1 column and fields$/, '1 column or field');
  };
  const counts = {};
  for (const model of data.models) for (const lane of model.lanes || []) for (const [, kind] of lane.marks) counts[kind] = (counts[kind] || 0) + 1;
  const chips = ORDER.filter((kind) => counts[kind] && kind !== 'created' && kind !== 'oldest').map((kind) => {
    const [glyph, label] = KINDS[kind];
    const chip = el('button', { type: 'button', 'aria-pressed': 'false', 'data-kind': kind },
      el('span', { class: `glyph ${kind}`, 'aria-hidden': 'true' }, glyph), label, el('small', {}, number(counts[kind])));
    chip.addEventListener('click', () => {
      if (kinds.has(kind)) kinds.delete(kind); else kinds.add(kind);
      chip.setAttribute('aria-pressed', String(kinds.has(kind)));
      filter();
    });
    return chip;
  });
  document.getElementById('kinds').append(...chips);
  search.addEventListener('input', filter);
  filter();

  // A link to one table, as from dbt's docs: its id is dbt's.
  const jump = () => {
    let id = '';
    try { id = decodeURIComponent(location.hash.slice(1)); } catch { return; }
    const found = models.find((model) => model.model.node === id);
    if (found) { found.details.open = true; found.details.scrollIntoView(); }
  };
  window.addEventListener('hashchange', jump);
  jump();
})();
