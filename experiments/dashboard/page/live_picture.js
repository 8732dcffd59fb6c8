// Shows the current scene of an environment of the run, or what its agent sees, while the user watches.
import {getPicture} from './api.js';
import {h, number} from './format.js';

const kPause = 250; // minimum ms between an answer and the next request
const kShare = 50; // and at least this multiple of the answer's time: a busy run is asked less often
const kLongestPause = 5000;
const kAfterFailure = 2000;

export class LivePicture {
  constructor() {
    const whole = (id) => h('input', {id, type: 'number', min: '0', max: '999999', value: '0', onchange: () => this.forget()});
    this.actor = whole('live-actor');
    this.environment = whole('live-environment');
    this.observed = h('input', {id: 'live-observed', type: 'checkbox', onchange: () => this.forget()});
    this.button = h('button', {type: 'button', 'aria-pressed': 'false', onclick: () => this.watch(!this.watching)}, 'Watch');
    this.image = h('canvas', {role: 'img', hidden: true, class: 'live'});
    this.caption = h('p', {class: 'muted', role: 'status'});
    this.element = h('div', {class: 'pictures'},
      h('div', {class: 'action'}, h('label', {for: 'live-actor'}, 'Environment actor '), this.actor, this.button),
      h('div', {class: 'action'}, h('label', {for: 'live-environment'}, 'Environment '), this.environment),
      h('div', {class: 'action'}, h('label', {for: 'live-observed'}, 'What the agent sees '), this.observed),
      this.image, this.caption);
    this.id = '';
    this.round = 0;
    this.watching = false;
  }

  /** Sets the run that is shown; '' if there is none to watch. */
  set(id) {
    if (id === this.id) return;
    this.id = id;
    this.watch(false);
    this.forget();
  }

  forget() {
    this.image.hidden = true;
    this.caption.textContent = '';
    this.round += 1; // an answer that is still on its way is for the previous choice
    if (this.watching) this.ask(this.round);
  }

  watch(on) {
    this.watching = on;
    this.button.setAttribute('aria-pressed', String(on));
    this.button.textContent = on ? 'Stop watching' : 'Watch';
    this.round += 1;
    if (on) this.ask(this.round);
  }

  async ask(round) {
    let pause = kPause;
    try {
      if (!document.hidden && this.element.offsetParent !== null) {
        const asked = performance.now();
        const picture = await getPicture({id: this.id, actor: this.actor.value, environment: this.environment.value, observed: this.observed.checked ? '1' : '0'});
        pause = Math.min(Math.max(kPause, kShare * (performance.now() - asked)), kLongestPause);
        const drawn = await createImageBitmap(picture.jpeg);
        if (round === this.round) this.show(drawn, picture.told);
      }
    } catch (error) {
      pause = kAfterFailure;
      if (round === this.round) this.caption.textContent = error.message;
    }
    if (round === this.round) setTimeout(() => round === this.round && this.ask(round), pause);
  }

  show(drawn, told) {
    this.image.width = drawn.width;
    this.image.height = drawn.height;
    this.image.getContext('2d').drawImage(drawn, 0, 0);
    drawn.close();
    this.image.hidden = false;
    this.image.classList.toggle('small', told.observed);
    const what = `${told.observed ? 'What the agent sees of' : 'The scene of'} environment ${this.environment.value} of ${told.environments} of actor ${this.actor.value}`;
    this.image.setAttribute('aria-label', what);
    this.caption.textContent = `${what}, after ${number(told.agent_steps)} steps of the actor`;
  }
}
