import tiny_weak

weak = tiny_weak.weak
