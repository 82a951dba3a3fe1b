# Several domains: CCT with adversarial alignment of their features (λ_adv = 2e-2).
model = dict(discriminator=dict(type='DomainDiscriminator', scale=2e-2))
